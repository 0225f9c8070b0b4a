"""Deadlines: who can be promised one, and how many devices each job holds when."""
