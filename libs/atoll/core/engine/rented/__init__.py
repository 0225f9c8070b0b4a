"""Work on rented machines: placed last, held while they boot, stopped before they end."""
