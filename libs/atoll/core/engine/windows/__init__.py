"""Windows of bookings in a cycle: who keeps out, who goes in, and who is stopped for them."""
