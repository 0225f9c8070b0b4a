"""KEY=VALUE, and amounts of devices, on the command line."""

from collections.abc import Iterable
from decimal import Decimal, InvalidOperation

from atoll.cli.failures import WrongUse
from atoll.core.model.resources import BLOCKS_PER_DEVICE


def labels_of(words: Iterable[str], option: str) -> dict[str, str]:
    """The pairs; the last one of a key wins. WrongUse for a word that is none."""
    pairs = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise WrongUse(f"--{option} `{word}`: write KEY=VALUE")
        pairs[key] = value
    return pairs


def blocks_of(devices: str, option: str) -> int:
    """`2.5` devices as blocks; WrongUse unless it is a number of whole percents, 0 or more."""
    try:
        blocks = Decimal(devices) * BLOCKS_PER_DEVICE
        whole = int(blocks)
    except (InvalidOperation, ValueError, OverflowError):
        raise WrongUse(f"--{option} {devices}: write a number of accelerators") from None
    if blocks != whole or whole < 0:
        raise WrongUse(f"--{option} {devices}: whole percents of an accelerator, 0 or more")
    return whole


def kinds_of(words: Iterable[str], option: str) -> dict[str, int]:
    """`H100=8 A100=0.5` as blocks by device kind; WrongUse for a word that is none."""
    pairs = {}
    for word in words:
        kind, equals, devices = word.rpartition("=")
        if not equals or not kind:
            raise WrongUse(f"--{option} `{word}`: write KIND=NUMBER, such as H100=8")
        pairs[kind] = blocks_of(devices, option)
    return pairs
