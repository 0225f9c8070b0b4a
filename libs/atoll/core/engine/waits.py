"""Why classes of jobs wait that a cycle found no place for."""

from collections import Counter
from collections.abc import Container, Hashable, Sequence
from dataclasses import dataclass, field

from atoll.core.engine.limits import limit_reasons
from atoll.core.engine.line import Lineup
from atoll.core.engine.masks import Masks
from atoll.core.engine.run_kernels import AT_LIMIT
from atoll.core.engine.score_kernels import Scoring
from atoll.core.engine.sentences import no_room_reason
from atoll.core.engine.why import Sight, reasons
from atoll.core.model.plan import Waiting
from atoll.core.model.reason import Reason
from atoll.core.state.snapshot import ClassView
from atoll.core.state.statement import Statement


@dataclass(slots=True)
class Waits:
    """Of one cycle."""

    lineup: Lineup
    masks: Masks
    statement: Statement
    scoring: Scoring
    passed: Counter[int]
    """By class, jobs that have started out of their turn."""
    _explained: dict[Hashable, tuple[Reason, ...]] = field(default_factory=dict)

    def of(
        self, blocked: Sequence[int], explained: int, *, again: Container[int]
    ) -> tuple[Waiting, ...]:
        """Blocked classes, up to `explained` distinct requests with numbers."""
        return tuple(self._waiting(group, explained, again=group in again) for group in blocked)

    def _waiting(self, group: int, explained: int, *, again: bool) -> Waiting:
        snapshot, line = self.lineup.snapshot, self.lineup.line
        view = snapshot.queue.classes[group]
        placed = int(line.next[group] - snapshot.queue.first[group]) + self.passed[group]
        if line.state[group] == AT_LIMIT:
            why = limit_reasons(view, snapshot, used=self.lineup.quota.used)
        else:
            why = self._reasons(view, explained)
        return Waiting(view.queue, view.request, view.jobs - placed, why, again)

    def _reasons(self, view: ClassView, explained: int) -> tuple[Reason, ...]:
        place = self.masks.place(view)
        known = self._explained.get(place)
        if known is None and len(self._explained) < explained:
            snapshot, nodes = self.lineup.snapshot, self.statement.nodes
            sight = Sight(snapshot, nodes, self.scoring, self.masks, queue=view.queue)
            known = self._explained[place] = reasons(sight, view.request, view.shapes)
        return known or (no_room_reason(),)
