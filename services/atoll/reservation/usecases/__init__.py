"""What the reservation service does, on core and ports."""
