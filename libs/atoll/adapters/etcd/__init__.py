"""Elections and the service registry over etcd, with a thin client of our own (ADR 0001)."""

from atoll.adapters.etcd.connection import EtcdConnection as EtcdConnection
from atoll.adapters.etcd.connection import TlsFiles as TlsFiles
from atoll.adapters.etcd.election import EtcdElection as EtcdElection
from atoll.adapters.etcd.errors import EtcdRejected as EtcdRejected
from atoll.adapters.etcd.errors import EtcdUnavailable as EtcdUnavailable
from atoll.adapters.etcd.registry import EtcdRegistry as EtcdRegistry
