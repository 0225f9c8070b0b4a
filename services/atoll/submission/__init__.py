"""Takes jobs in, writes what users want of them, and answers what became of them."""
