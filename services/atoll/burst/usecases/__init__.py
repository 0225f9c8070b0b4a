"""What the burst service does, over the store's and the providers' ports."""
