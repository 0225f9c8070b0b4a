"""Backends: one file each, and one line in the registry."""
