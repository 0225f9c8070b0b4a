"""Real PostgreSQL, etcd and Valkey as child processes: the embedded stack and the tests use them.

Everything listens on loopback only. A server keeps its data over stop and start.
Life cycle methods are coroutines; signals (`kill`, `pause`, `resume`) are not.
"""

from atoll.runtime.servers.errors import ServerError as ServerError
from atoll.runtime.servers.etcd import EtcdCluster as EtcdCluster
from atoll.runtime.servers.etcd import EtcdServer as EtcdServer
from atoll.runtime.servers.etcd import EtcdTls as EtcdTls
from atoll.runtime.servers.postgres import PostgresServer as PostgresServer
from atoll.runtime.servers.server import Server as Server
from atoll.runtime.servers.valkey import ValkeyServer as ValkeyServer
