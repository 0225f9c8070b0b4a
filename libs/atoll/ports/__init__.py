"""What the use cases need from outside, as Protocols in model types."""
