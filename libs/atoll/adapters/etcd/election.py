"""Elections over etcd: the oldest living candidate leads.

Each candidate holds a lease and, under the election's prefix, a key that goes
when the lease does. Nobody's turn comes before all keys created earlier are gone,
so a candidate watches the one just before its own. The revision that created the
leader's key is its epoch.
"""

import asyncio
import logging
from collections.abc import Coroutine
from dataclasses import dataclass
from typing import Any, Final

from atoll.adapters.etcd import keys
from atoll.adapters.etcd.connection import EtcdConnection
from atoll.adapters.etcd.errors import EtcdRejected, EtcdUnavailable, LeaseLost
from atoll.adapters.etcd.lease import Lease
from atoll.adapters.etcd.watch import until_gone
from atoll.core.model.ids import Epoch
from atoll.ports.clock import Clock

GENERATION_KEY: Final = "/atoll/generation"
"""Raised by an operator after etcd was wiped or restored: its revisions begin anew then."""
AGAIN_AFTER_S: Final = 0.5
LOG: Final = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Victory:
    key: str
    revision: int
    """At which the key stood and nobody was ahead."""
    epoch: Epoch


class EtcdLeadership:
    """A won election, tied to a lease and a key: it ends with either."""

    def __init__(self, lease: Lease, epoch: Epoch, key_gone: Coroutine[Any, Any, None]) -> None:
        self._lease = lease
        self._epoch = epoch
        self._guard = asyncio.create_task(self._hold(key_gone))

    @property
    def epoch(self) -> Epoch:
        """(generation, create revision of the leader's key)."""
        return self._epoch

    def valid(self) -> bool:
        """Whether the lease cannot have run out yet."""
        return self._lease.valid()

    async def lost(self) -> None:
        """Return when leadership is lost or its validity ran out."""
        await self._lease.lost()

    async def resign(self) -> None:
        """Give leadership up at once."""
        self._guard.cancel()
        await self._lease.revoke()

    async def _hold(self, key_gone: Coroutine[Any, Any, None]) -> None:
        """Lose the lease too when somebody deletes the key: a successor leads then."""
        try:
            await self._lease.while_held(key_gone)
        except (EtcdRejected, LeaseLost) as error:
            LOG.warning("leadership %s ends: %s", self._epoch, error)
        finally:
            self._lease.lose()


class EtcdElection:
    """The candidacy of `identity` in the election `prefix` (`/atoll/elections/<name>`).

    `ttl_s` is how long a dead leader blocks its successors, 2 s at the least.
    The connection stays its owner's.
    """

    def __init__(
        self, etcd: EtcdConnection, *, prefix: str, identity: str, ttl_s: float, clock: Clock
    ) -> None:
        self._etcd = etcd
        self._below = prefix.rstrip("/") + "/"
        self._identity = identity
        self._ttl_s = ttl_s
        self._clock = clock
        self._leadership: EtcdLeadership | None = None

    async def campaign(self) -> EtcdLeadership:
        """Wait until elected; raises EtcdRejected."""
        await self.close()
        while True:
            try:
                self._leadership = await self._stand()
                return self._leadership
            except (EtcdUnavailable, LeaseLost) as error:
                LOG.warning("candidacy below %s starts again: %s", self._below, error)
            await self._clock.sleep(AGAIN_AFTER_S)

    async def leader(self) -> str | None:
        """The identity of the oldest candidate; raises EtcdUnavailable or EtcdRejected."""
        candidates = await keys.list_below(self._etcd, self._below)
        return candidates.entries[0].value if candidates.entries else None

    async def close(self) -> None:
        """Resign if elected."""
        if self._leadership is not None:
            await self._leadership.resign()
            self._leadership = None

    async def _stand(self) -> EtcdLeadership:
        """One candidacy with one lease, up to its victory or the lease's loss."""
        lease = await Lease.grant(self._etcd, self._clock, ttl_s=self._ttl_s)
        try:
            won = await lease.while_held(self._win(lease))
        except BaseException:
            await lease.revoke()
            raise
        gone = until_gone(self._etcd, won.key, revision=won.revision, clock=self._clock)
        return EtcdLeadership(lease, won.epoch, gone)

    async def _win(self, lease: Lease) -> _Victory:
        key = f"{self._below}{lease.id:016x}"
        created = await keys.create_or_read(self._etcd, key, self._identity, lease=lease.id)
        revision = await self._turn(key, created)
        return _Victory(key, revision, Epoch(await self._generation(), created))

    async def _turn(self, key: str, created: int) -> int:
        """The revision at which nobody was ahead; raises LeaseLost if our own key is gone."""
        while True:
            seen = await keys.standing(self._etcd, prefix=self._below, key=key, created=created)
            if not seen.entries or seen.entries[0].key != key:
                raise LeaseLost(f"{key} was deleted")
            if len(seen.entries) == 1:
                return seen.revision
            ahead = seen.entries[1].key
            await until_gone(self._etcd, ahead, revision=seen.revision, clock=self._clock)

    async def _generation(self) -> int:
        """Read only now: it must not be older than what the last leader was given."""
        found = await keys.get(self._etcd, GENERATION_KEY)
        if not found.entries:
            return 0
        text = found.entries[0].value
        if not text.isdecimal():
            raise EtcdRejected(f"etcd: {GENERATION_KEY} is not a number: {text!r}")
        return int(text)
