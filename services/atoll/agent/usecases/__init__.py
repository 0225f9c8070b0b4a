"""What an agent does with decisions and events, free of I/O."""
