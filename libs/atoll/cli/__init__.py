"""The `atoll` command."""
