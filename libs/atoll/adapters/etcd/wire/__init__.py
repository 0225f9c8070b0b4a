"""Messages of etcd's public API, as far as they are used.

`etcdwire_pb2` is generated from `etcdwire.proto` by `make protos`, and committed.
"""
