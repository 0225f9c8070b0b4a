"""Options of channels and servers that have to agree, in one place.

Without them a server answers pings more frequent than five minutes with GOAWAY too_many_pings.
"""

from typing import Final

KEEPALIVE_MS: Final = 20_000
KEEPALIVE_TIMEOUT_MS: Final = 10_000
MIN_PING_INTERVAL_MS: Final = 5_000
"""Below KEEPALIVE_MS with room for jitter: the server must not take its clients for hostile."""

Options = list[tuple[str, int]]


def client_options(*, max_message_bytes: int) -> Options:
    """Of a channel to one of our servers."""
    return [
        ("grpc.keepalive_time_ms", KEEPALIVE_MS),
        ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MS),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.max_receive_message_length", max_message_bytes),
        ("grpc.max_send_message_length", max_message_bytes),
        ("grpc.initial_reconnect_backoff_ms", 200),
        ("grpc.min_reconnect_backoff_ms", 200),
        ("grpc.max_reconnect_backoff_ms", 5_000),
    ]


def server_options(*, max_message_bytes: int) -> Options:
    """Of our servers; a longer message is refused with RESOURCE_EXHAUSTED before it is parsed."""
    return [
        ("grpc.keepalive_time_ms", KEEPALIVE_MS),
        ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MS),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", MIN_PING_INTERVAL_MS),
        # Pings that a loaded or frozen machine delivers in a bunch look like a flood; a cut
        # connection would then cost more than the pings do.
        ("grpc.http2.max_ping_strikes", 0),
        ("grpc.max_receive_message_length", max_message_bytes),
        ("grpc.max_send_message_length", max_message_bytes),
        # Two processes on one port would each see half of the calls, and no error.
        ("grpc.so_reuseport", 0),
    ]
