"""The broker's decisions: what to rent and what to end, by what is known now, and nothing else."""
