"""Why a booking cannot be had, as a detail of the error. It has to fit into trailing metadata."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Final

from google.protobuf.any_pb2 import Any

from atoll.api.reservation.v1 import reservation_pb2 as pb
from atoll.core.model.refusal import BookingRefused
from atoll.core.model.reservation import CandidateWindow, Obstacle
from atoll.wire.reservation import (
    obstacle_from_proto,
    obstacle_to_proto,
    window_from_proto,
    window_to_proto,
)

MOST_OBSTACLES: Final = 6
MOST_WINDOWS: Final = 3
MOST_SHARES: Final = 4
"""Nodes of an alternative; of one that has more only the clusters are told."""
MOST_DISPLACED: Final = 4
MOST_TEXT: Final = 200


def refusal_to_proto(refused: BookingRefused) -> pb.Refusal:
    """What is in the way, the largest first, and what could be had; cut to a few of each."""
    return pb.Refusal(
        obstacles=[obstacle_to_proto(_short(each)) for each in refused.obstacles[:MOST_OBSTACLES]],
        alternatives=[
            window_to_proto(_brief(each)) for each in refused.alternatives[:MOST_WINDOWS]
        ],
        start_at=refused.start_at,
    )


def refused_of(message: str, details: Iterable[Any]) -> BookingRefused:
    """The refusal that an error's details tell of."""
    proto = pb.Refusal()
    for detail in details:
        if detail.Unpack(proto):
            break
    return BookingRefused(
        message,
        start_at=proto.start_at,
        obstacles=tuple(obstacle_from_proto(each) for each in proto.obstacles),
        alternatives=tuple(window_from_proto(each) for each in proto.alternatives),
    )


def _short(obstacle: Obstacle) -> Obstacle:
    return replace(
        obstacle,
        name=obstacle.name[:MOST_TEXT],
        owner=obstacle.owner[:MOST_TEXT],
        message=obstacle.message[:MOST_TEXT],
    )


def _brief(window: CandidateWindow) -> CandidateWindow:
    parts = window.parts
    if sum(len(part.shares) for part in parts) > MOST_SHARES:
        parts = tuple(replace(part, shares=()) for part in parts[:MOST_SHARES])
    return replace(window, parts=parts, displaced=window.displaced[:MOST_DISPLACED])
