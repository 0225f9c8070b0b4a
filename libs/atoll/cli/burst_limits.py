"""What may be rented, from what the options say."""

from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Annotated, Any, Final, Literal

from cyclopts import Parameter

from atoll.cli.failures import WrongUse
from atoll.cli.money import amount, bound
from atoll.client.burst_views import PolicyInfo
from atoll.core.model.burst import Market

ANY: Final = "any"
Words = Annotated[tuple[str, ...], Parameter(negative=())]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of renting."""

    allow: Annotated[bool | None, Parameter(help="Whether it may rent at all.")] = None
    per_hour: Annotated[
        str | None, Parameter(help="Dollars an hour at most, at any time; `none`: no bound.")
    ] = None
    per_month: Annotated[
        str | None, Parameter(help="Dollars a calendar month at most; `none`: no bound.")
    ] = None
    region: Annotated[
        Words, Parameter(help="Where its data may go; may be given again; `any`: anywhere.")
    ] = ()
    provider: Annotated[
        Words, Parameter(help="From whom; may be given again; `any`: from all.")
    ] = ()
    most_price: Annotated[
        str | None, Parameter(help="Dollars per device-hour at most; `none`: no bound.")
    ] = None
    market: Annotated[
        Literal["spot", "on-demand", "any"] | None, Parameter(help="How it may be paid for.")
    ] = None
    hour_of_delay: Annotated[
        str | None, Parameter(help="Dollars that an hour of waiting of one device costs.")
    ] = None
    kill: Annotated[
        bool | None, Parameter(help="With --all: rent nothing any more, and drain what is there.")
    ] = None

    def changed(self, old: PolicyInfo) -> tuple[PolicyInfo, list[str]]:
        """A policy with what is given, and the paths of what that changes."""
        values = {**self._yes_or_no(), **self._places(), **self._prices()}
        budget = {
            name: bound(text, name.replace("_", "-"))
            for name in ("per_hour", "per_month")
            if (text := getattr(self, name)) is not None
        }
        policy = replace(old, **values, budget=replace(old.budget, **budget))
        return policy, [*values, *(f"budget.{name}" for name in budget)]

    def _yes_or_no(self) -> dict[str, Any]:
        found = {"allowed": self.allow, "killed": self.kill}
        return {name: value for name, value in found.items() if value is not None}

    def _places(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.region:
            found["regions"] = _listed(self.region, "region")
        if self.provider:
            found["providers"] = _listed(self.provider, "provider")
        if self.market is not None:
            markets = tuple(Market) if self.market == ANY else (Market(_name(self.market)),)
            found["markets"] = markets
        return found

    def _prices(self) -> dict[str, Decimal | None]:
        found: dict[str, Decimal | None] = {}
        if self.most_price is not None:
            found["most_price"] = bound(self.most_price, "most-price")
        if self.hour_of_delay is not None:
            found["hour_of_delay"] = amount(self.hour_of_delay, "hour-of-delay")
        return found


def _listed(words: tuple[str, ...], option: str) -> tuple[str, ...]:
    if ANY not in words:
        return words
    if len(words) > 1:
        raise WrongUse(f"--{option} any: leave the others out")
    return ()


def _name(market: str) -> str:
    return market.replace("-", "_")


NO_LIMITS: Final = Limits()
