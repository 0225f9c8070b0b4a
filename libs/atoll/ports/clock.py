"""Time and identity as arguments, so that nothing below reads a clock or rolls dice by itself."""

from typing import Protocol


class Clock(Protocol):
    """Two clocks and the only way to wait."""

    def now(self) -> float:
        """Wall time in seconds since 1970 UTC; it may jump, so never subtract two of them."""
        ...

    def monotonic(self) -> float:
        """Seconds since some start; never goes back, counts while the machine is suspended."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return when `seconds` have passed; at once, but not before others ran, for 0 or less."""
        ...


class Ids(Protocol):
    """Fresh identities and the randomness that spreads retries."""

    def uuid(self) -> str:
        """A random UUID in its 36 character form."""
        ...

    def token(self, nbytes: int) -> str:
        """An unguessable URL-safe text made from `nbytes` random bytes."""
        ...

    def jitter(self) -> float:
        """A number in 0 <= x < 1 for spreading retries; not for secrets."""
        ...
