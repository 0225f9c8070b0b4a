"""How much will be wanted: what is known now and what is likely to come, as quantiles."""
