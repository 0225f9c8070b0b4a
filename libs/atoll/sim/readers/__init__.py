"""Readers of public traces, one file per format. The traces themselves are never shipped."""
