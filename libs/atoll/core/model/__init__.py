"""Values: what jobs, attempts, inventories, plans and reasons are made of."""
