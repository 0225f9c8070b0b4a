"""A cluster that is too small at times, a market of machines, and rules that rent them."""
