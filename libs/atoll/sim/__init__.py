"""The simulator: the real scheduler, use cases and loops on a virtual clock."""
