"""Which zone to take spot capacity in."""

from atoll.core.engine.burst.spot import Choice, Mode
from atoll.core.engine.burst.watch import Market


def best_spot(market: Market) -> Choice | None:
    """The zone that is up and most often was; then the one that has been up for longest."""
    ranks = [(seen.share, seen.run_s, -zone) for zone, seen in enumerate(market.zones) if seen.up]
    return Choice(Mode.SPOT, -max(ranks)[2]) if ranks else None
