"""The pure core: values, ledger, policies and the cycle. No I/O, clock or randomness."""
