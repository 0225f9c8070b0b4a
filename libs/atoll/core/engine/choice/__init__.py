"""Which of the places where a job could run is best, and what makes it so."""
