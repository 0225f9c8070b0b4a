"""The cycle: from a snapshot to a plan, and why a job was left out of it."""
