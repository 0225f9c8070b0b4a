"""Bookings: what fits when, where, and at whose cost; recurrences, rules, and when what is due."""
