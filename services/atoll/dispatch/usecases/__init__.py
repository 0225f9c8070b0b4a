"""What dispatch does, on core and ports alone: sessions, decisions, reports, inventories, logs."""
