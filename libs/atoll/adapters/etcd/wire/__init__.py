"""Messages of etcd's public API, as far as they are used.

`etcdwire_pb2` is generated from `etcdwire.proto` and committed. To generate it again:

    python -m grpc_tools.protoc -Ilibs --python_out=libs --mypy_out=libs \
        libs/atoll/adapters/etcd/wire/etcdwire.proto
"""
