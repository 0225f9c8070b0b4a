"""The store's ports: one per role, each with just what that role reads and writes.

Every `begin()` is one short transaction: no network call but the store's own inside it. Locks are
taken in one order everywhere: shards, clusters, sessions, jobs, attempts, allocations; within a
table by ascending id. A transaction that ends without an exception is committed when `begin()`'s
block returns; `UnknownOutcome` says that nobody knows whether it was.
"""
