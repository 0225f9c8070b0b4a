"""What the leader knows, in arrays: MIG tables, ledger, queue, world, snapshot, statement."""
