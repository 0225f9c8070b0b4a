"""What submission does, on core and ports alone."""
