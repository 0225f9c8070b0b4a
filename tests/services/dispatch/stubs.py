"""Sessions without a store or a stream behind them."""

from atoll.core.model.ids import ClusterName
from atoll.dispatch.usecases.desk import LogDesk
from atoll.dispatch.usecases.lane import Lane
from atoll.dispatch.usecases.outbox import Outbox
from atoll.dispatch.usecases.session import Session, Stock


def session(
    cluster: str = "alpha", *, epoch: int = 1, start: int = 0, window: int = 100
) -> Session:
    """A session that has applied all up to `start`."""
    outbox = Outbox(lambda: None)
    name = ClusterName(cluster)
    return Session(
        cluster=name,
        epoch=epoch,
        instance="first",
        lane=Lane(start, head=start, window=window),
        outbox=outbox,
        desk=LogDesk(name, outbox),
        stock=Stock(0),
    )
