"""A cluster that exists only as numbers: its description, its nodes, its runs, its ledger."""
