"""When capacity is free: profiles, holes in them, reservations, and forecasts."""
