"""The placement service: one leader per shard decides where jobs run; standbys wait."""
