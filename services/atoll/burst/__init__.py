"""Rents capacity before it is missed, and gives it back."""
