"""`H100:8`, `H100:0.25`, `1g.10gb:2`: accelerators as people write them.

A kind is a name, never code: `H100`, `TPU-v5e` and `Trainium2` are all the same here.
"""

import re
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Final

from atoll.client.spec.quantities import positive
from atoll.core.model.resources import ANY_KIND, BLOCKS_PER_DEVICE, DeviceRequest
from atoll.core.model.validate_shape import MOST_DEVICES
from atoll.core.model.validate_text import MOST_NAME, NAME

PROFILE: Final = re.compile(r"[1-9]g\.\d{1,4}gb(\+[a-z]{2,8}(\.[a-z]{2,8})?)?", re.IGNORECASE)
_AMOUNT: Final = re.compile(r"-?\d{1,18}(\.\d{1,9})?")
_FRACTION: Final = re.compile(r"(\d{1,4})/([1-9]\d{0,3})")
_FORMS: Final = "write H100, H100:8, H100:0.25, H100:1g.10gb, 1g.10gb:2, or 8 for any kind"


def parse_accelerators(value: object) -> DeviceRequest:
    """The request in base units; ValueError tells what would be right."""
    match value:
        case bool():
            raise ValueError(_FORMS)
        case int() | float():
            return _share_or_whole(ANY_KIND, str(value))
        case str():
            return _parse_text(value.strip())
        case dict() if len(value) == 1:
            ((kind, amount),) = value.items()
            return _parse_text(f"{kind}:{amount}")
        case _:
            raise ValueError(f"{_FORMS}; several kinds go into resources.any_of")


def _parse_text(text: str) -> DeviceRequest:
    first, colon, rest = text.partition(":")
    if PROFILE.fullmatch(first):
        return _slices(ANY_KIND, first, count=rest if colon else "1")
    if not colon and _AMOUNT.fullmatch(first):
        return _share_or_whole(ANY_KIND, first)
    if len(first) > MOST_NAME or not NAME.fullmatch(first):
        raise ValueError(f"`{text[:60]}` is no accelerator; {_FORMS}")
    amount, more, count = (rest if colon else "1").partition(":")
    if PROFILE.fullmatch(amount):
        return _slices(first, amount, count=count if more else "1")
    if fraction := _FRACTION.fullmatch(amount):
        amount = f"{Decimal(fraction[1]) / Decimal(fraction[2]):.9f}"
    if more or not _AMOUNT.fullmatch(amount):
        raise ValueError(f"`{text[:60]}` is no accelerator; {_FORMS}")
    return _share_or_whole(first, amount)


def _slices(kind: str, profile: str, *, count: str) -> DeviceRequest:
    number = positive(count)
    if number != int(number):
        raise ValueError(f"slices are counted whole: use {profile}:{_above(number)}")
    return DeviceRequest(kind=kind, count=_bounded(number), profile=profile.lower())


def _share_or_whole(kind: str, amount: str) -> DeviceRequest:
    if amount.startswith("-") or not Decimal(amount):
        raise ValueError("must be more than 0; a job without accelerators leaves them out")
    number = positive(_without_zeros(amount))
    if number == int(number):
        return DeviceRequest(kind=kind, count=_bounded(number))
    if number > 1:
        raise ValueError(
            f"{number} is not possible: a share is of one device; use {_below(number)} "
            f"or {_above(number)} whole ones"
        )
    return DeviceRequest(kind=kind, count=1, blocks=_blocks(number))


def _blocks(share: Decimal) -> int:
    blocks = share * BLOCKS_PER_DEVICE
    if blocks == int(blocks):
        return int(blocks)
    less, more = _below(blocks), _above(blocks)
    near = [f"{Decimal(n) / BLOCKS_PER_DEVICE:.2f}" for n in (less, more) if 0 < n < 100]
    near += ["1"] if more == BLOCKS_PER_DEVICE else []
    raise ValueError(f"blocks are whole percents: use {' or '.join(near)}")


def _bounded(number: Decimal) -> int:
    if number > MOST_DEVICES:
        raise ValueError(f"a task takes at most {MOST_DEVICES:,}, all on one node; see num_nodes")
    return int(number)


def _without_zeros(amount: str) -> str:
    return amount.rstrip("0").rstrip(".") if "." in amount else amount


def _below(number: Decimal) -> int:
    return int(number.to_integral_value(ROUND_FLOOR))


def _above(number: Decimal) -> int:
    return int(number.to_integral_value(ROUND_CEILING))
