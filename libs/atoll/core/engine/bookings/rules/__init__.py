"""Standing rules: what each of them wishes to be booked now, and why."""
