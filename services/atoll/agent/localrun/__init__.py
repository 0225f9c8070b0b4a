"""Runs on this machine: their folders, their wrapper, their limits, the machine's devices."""
