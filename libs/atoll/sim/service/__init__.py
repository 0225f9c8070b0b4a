"""The real services in one process, on a virtual clock."""
