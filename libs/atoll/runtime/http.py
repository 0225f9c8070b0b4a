"""/metrics for Prometheus, /healthz and /readyz for probes, over HTTP in a thread of its own."""

import socket
import ssl
import sys
import threading
from collections.abc import Callable, Iterable
from socketserver import ThreadingMixIn
from typing import Any, Final, cast
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server
from wsgiref.types import StartResponse, WSGIEnvironment

from prometheus_client import REGISTRY, make_wsgi_app

from atoll.runtime.address import Address
from atoll.runtime.settings import ServiceSettings

Probe = Callable[[], bool]
REQUEST_WITHIN_S: Final = 10.0


class HttpServer:
    """Serves metrics and the answers of two probes."""

    def __init__(self, settings: ServiceSettings, *, alive: Probe, ready: Probe) -> None:
        wanted = Address.parse(settings.metrics_listen)
        self._server = make_server(
            wanted.host,
            wanted.port,
            _app({"/healthz": alive, "/readyz": ready}),
            server_class=_server_class(wanted),
            handler_class=_Quiet,
        )
        if settings.tls and not wanted.loopback:
            # The handshake is for the connection's own thread: one that stalls holds up no other.
            self._server.socket = _tls(settings).wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="metrics", daemon=True
        )
        self._thread.start()
        self.address = str(Address(wanted.host, self._server.server_port))

    def close(self) -> None:
        """Stop listening."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _app(probes: dict[str, Probe]) -> Any:
    metrics = make_wsgi_app(REGISTRY)

    def app(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == "/metrics":
            return cast(Iterable[bytes], metrics(environ, start_response))
        if path not in probes:
            start_response("404 Not Found", [("Content-Type", "text/plain")])
            return [b"not found\n"]
        well = probes[path]()
        status = "200 OK" if well else "503 Service Unavailable"
        start_response(status, [("Content-Type", "text/plain")])
        return [b"ok\n" if well else b"not ready\n"]

    return app


def _tls(settings: ServiceSettings) -> ssl.SSLContext:
    if settings.tls_cert is None:
        raise AssertionError("asked for without a certificate")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(settings.tls_cert, settings.tls_key)
    return context


def _server_class(wanted: Address) -> type[WSGIServer]:
    family = socket.AF_INET6 if ":" in wanted.host else socket.AF_INET
    return type("MetricsServer", (_Threading,), {"address_family": family})


class _Threading(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Whoever does not bring a request to its end is no news."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Quiet(WSGIRequestHandler):
    timeout = REQUEST_WITHIN_S

    def log_message(self, format: str, *args: object) -> None:
        """Probes are no news."""
