"""Standing rules as YAML: one rule a document, of exactly one kind."""

from datetime import datetime
from pathlib import Path
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, ValidationError

from atoll.client.spec.fields import Count, Name, QueuePath, Seconds, Text
from atoll.client.spec.models import Strict
from atoll.client.spec.reader import MOST_BYTES, read_documents
from atoll.client.spec.violations import messages_of
from atoll.core.model.errors import FieldViolation, InvalidInput
from atoll.core.model.ids import ClusterName, QueueName
from atoll.core.model.reservation import When
from atoll.core.model.standing_rule import (
    InteractiveHoursRule,
    LargeJobRule,
    RollingMaintenanceRule,
    Rule,
    RuleKind,
)

KINDS: Final = ("large_job", "rolling_maintenance", "interactive_hours")


def _moment(value: object) -> float:
    try:
        found = datetime.fromisoformat(str(value))
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        raise ValueError("write a time with its offset, such as 2026-12-07T22:00+01:00")
    return found.timestamp()


Moment = Annotated[float, BeforeValidator(_moment)]


class LargeJob(Strict):
    """Books for queued jobs above a size, or with a guaranteed deadline."""

    devices_above: Annotated[int, Field(ge=0)] = 0
    guaranteed: bool = False
    queues: tuple[QueuePath, ...] = ()

    def kind(self) -> LargeJobRule:
        """As the client takes it."""
        queues = tuple(QueueName(name) for name in self.queues)
        return LargeJobRule(self.devices_above, self.guaranteed, queues)


class RollingMaintenance(Strict):
    """Every node of a cluster once, a few domains at a time."""

    cluster: Text
    level: Text
    most_at_once: Count = 1
    length: Seconds
    start: Moment = 0.0
    end: Moment = 0.0
    hours: Text = ""
    zone: Text = ""

    def kind(self) -> RollingMaintenanceRule:
        """As the client takes it."""
        return RollingMaintenanceRule(
            cluster=ClusterName(self.cluster),
            level=self.level,
            most_at_once=self.most_at_once,
            length_s=self.length,
            start_at=self.start,
            end_at=self.end,
            hours_rrule=self.hours,
            zone=self.zone,
        )


class InteractiveHours(Strict):
    """Recurring hours whose size follows what was really used in the weeks before."""

    queue: QueuePath
    kind_of_device: Text = Field(alias="kind")
    start: Text
    length: Seconds
    repeat: Text
    zone: Text = ""
    weeks: Count = 4
    quantile: Annotated[float, Field(ge=0, le=1)] = 0.9
    least: Annotated[int, Field(ge=0)] = 0
    most: Annotated[int, Field(ge=0)] = 0
    cluster: Text = ""

    def kind(self) -> InteractiveHoursRule:
        """As the client takes it."""
        return InteractiveHoursRule(
            queue=QueueName(self.queue),
            kind=self.kind_of_device,
            when=When(self.length, start_local=self.start, zone=self.zone, rrule=self.repeat),
            weeks=self.weeks,
            quantile=self.quantile,
            least=self.least,
            most=self.most,
            cluster=ClusterName(self.cluster),
        )


class RuleFile(Strict):
    """One rule."""

    name: Name
    enabled: bool = True
    etag: Annotated[int, Field(ge=0)] = 0
    large_job: LargeJob | None = None
    rolling_maintenance: RollingMaintenance | None = None
    interactive_hours: InteractiveHours | None = None

    def rule(self) -> Rule | None:
        """As the client takes it; None unless it is of exactly one kind."""
        kinds: list[RuleKind] = [
            given.kind()
            for given in (self.large_job, self.rolling_maintenance, self.interactive_hours)
            if given is not None
        ]
        if len(kinds) != 1:
            return None
        return Rule(self.name, kinds[0], enabled=self.enabled, etag=self.etag)


def read_rules(path: Path) -> list[Rule]:
    """The rules of a file; InvalidInput names every field that is wrong."""
    with path.open("rb") as file:
        documents = read_documents(file.read(MOST_BYTES + 1))
    rules: list[Rule] = []
    wrong: list[FieldViolation] = []
    for number, document in enumerate(documents):
        at = f"rules[{number}]"
        try:
            rule = RuleFile.model_validate(document.value).rule()
        except ValidationError as error:
            wrong += [
                FieldViolation(f"{at}.{each.field}", each.message, each.code)
                for each in messages_of(error, RuleFile)
            ]
            continue
        if rule is None:
            wrong.append(FieldViolation(at, f"must have exactly one of {', '.join(KINDS)}"))
        else:
            rules.append(rule)
    if wrong or not documents:
        raise InvalidInput(tuple(wrong) or (FieldViolation("rules", "is empty"),))
    return rules
