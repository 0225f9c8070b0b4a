"""gRPC servers and channels, and what happens around every call."""
