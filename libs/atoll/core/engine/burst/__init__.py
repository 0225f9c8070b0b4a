"""What to rent, for which job, and for how long: pure rules, told only what has been seen."""
