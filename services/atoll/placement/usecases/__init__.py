"""What the leader does, on the core and the ports alone."""
