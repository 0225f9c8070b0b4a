"""Those who rent machines out: one file each, and one line in the registry."""
