"""Dollars on the command line, and as people read them."""

from decimal import Decimal
from typing import Final

from atoll.cli.failures import WrongUse
from atoll.client.burst_reading import dollars
from atoll.client.spec.quantities import micro_dollars

NO_BOUND: Final = "none"


def amount(text: str, option: str) -> Decimal:
    """Dollars of `20`, `12.50` or `$1,200`."""
    try:
        return dollars(micro_dollars(text))
    except ValueError as error:
        raise WrongUse(f"--{option} `{text}`: {error}") from None


def bound(text: str, option: str) -> Decimal | None:
    """The same, or None for `none`."""
    return None if text.lower() == NO_BOUND else amount(text, option)


def money(given: Decimal) -> str:
    """`$1,234.50`, `$0.012`: up to four digits of what is less than a dollar, at least two."""
    if abs(given) >= 1:
        return f"${given:,.2f}"
    return f"${f'{given:.4f}'.rstrip('0'):0<4}"


def money_or(given: Decimal | None, otherwise: str = "-") -> str:
    """The same, or `otherwise` where there is none."""
    return otherwise if given is None else money(given)


def part(spent: Decimal, of: Decimal) -> float:
    """How much of a budget above 0 is spent, 0 to 1."""
    return float(min(Decimal(1), spent / of))
