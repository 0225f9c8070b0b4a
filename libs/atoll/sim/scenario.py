"""A scenario: clusters, work, settings and faults, as a YAML file says them. See docs/simulator.md.

Times are seconds or texts such as `90s`, `6h` and `2d`.
"""

from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self

import yaml
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from atoll.client.spec.quantities import cpu_milli, duration_s, memory_bytes
from atoll.core.model.errors import FieldViolation, InvalidInput

SHIPPED: Final = Path(__file__).parent / "scenarios"
DAY_S: Final = 86_400.0


def _duration(value: object) -> object:
    return duration_s(value) if isinstance(value, str) else value


Seconds = Annotated[float, BeforeValidator(_duration), Field(ge=0)]
Cpus = Annotated[int, BeforeValidator(cpu_milli)]
Bytes = Annotated[int, BeforeValidator(memory_bytes)]
Share = Annotated[float, Field(ge=0, le=1)]


class Model(BaseModel):
    """Unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class ClusterPart(Model):
    """One cluster: `nodes` in place, or the `file` that lists them."""

    name: str
    file: Path | None = None
    """A clusters file (YAML, JSON), or a node list in openb's format (CSV, may be gzipped)."""
    nodes: tuple[dict[str, Any], ...] = ()
    levels: tuple[str, ...] = ()
    labels: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if (self.file is None) == (not self.nodes):
            raise ValueError("give either `file` or `nodes`")
        return self


class QueuePart(Model):
    """One queue. Amounts are devices."""

    name: str
    weight: float = Field(default=1.0, gt=0)
    deserved: dict[str, float] = Field(default_factory=dict)
    limit: float = Field(default=0.0, ge=0)
    kind_limits: dict[str, float] = Field(default_factory=dict)
    preempts: bool = True


class RunTimes(Model):
    """Log-normal run times."""

    median: Seconds = 1200.0
    sigma: float = Field(default=1.2, ge=0)
    least: Seconds = 10.0
    most: Seconds = DAY_S


class Synthetic(Model):
    """Jobs from a generator. Shares are probabilities; weights need not sum up to 1."""

    jobs: int = Field(default=200, ge=0)
    over: Seconds = DAY_S
    """Arrivals are a Poisson process of so many jobs in this time."""
    daily: Share = 0.0
    """How much less is submitted at night, as in a sine over the day."""
    run: RunTimes = RunTimes()
    sizes: dict[float, float] = Field(
        default_factory=lambda: {1.0: 0.6, 2.0: 0.2, 4.0: 0.1, 8.0: 0.1}
    )
    """Devices to weights: below 1 a share of one; above `per_node` a gang over whole nodes."""
    per_node: int = Field(default=8, ge=1)
    kinds: dict[str, float] = Field(default_factory=lambda: {"": 1.0})
    """Device kinds to weights; empty: any."""
    cpus: Cpus = 4000
    """For each device, or each job without one."""
    memory: Bytes = 16 << 30
    queues: dict[str, float] = Field(default_factory=lambda: {"default": 1.0})
    classes: dict[str, float] = Field(default_factory=lambda: {"normal": 1.0})
    checkpoint: Seconds = 600.0
    restart_cost: Seconds = 30.0
    grace: Seconds = 10.0
    requeue: Share = 0.5
    """Jobs with `on_lost: requeue`; the others hold."""
    retries: int = Field(default=10, ge=0)
    deadlines: Share = 0.0
    slack: tuple[float, float] = (1.5, 4.0)
    """Deadline: so many run times after the submit, drawn evenly."""
    best_effort: bool = True
    """Jobs run even if nobody can promise their deadlines; False: they are refused then."""
    limits: tuple[float, float] = (1.2, 4.0)
    """Time limit: so many run times, drawn evenly."""
    topology: str = ""
    """Level that gangs are to stay inside, if they can."""
    cancelled: Share = 0.0
    """Jobs that their users cancel at a random moment."""


class Trace(Model):
    """Jobs from a public trace."""

    format: Literal["openb", "philly", "elasticflow", "swf", "pwa"]
    file: Path
    limit: int = Field(default=0, ge=0)
    """Only the first jobs; 0: all."""
    speed: float = Field(default=1.0, gt=0)
    """Trace seconds between two submits in one second; run times stay as they are."""
    queue: str = ""
    """For all jobs; empty: what the trace says, else `default`."""
    checkpoint: Seconds = 0.0
    per_node: int = Field(default=16, ge=1)
    """`swf`, `pwa`: processors of a task."""
    cluster: int = Field(default=1, ge=1)
    """`elasticflow`: number of the cluster whose jobs are meant; `file` is the traces' folder."""


class Fault(Model):
    """Something that goes wrong, `at` given times or at random, on average once `every` so long."""

    what: Literal[
        "node-death", "device-loss", "revoked-spot", "silent-agent", "agent-restart",
        "late-answers", "slow-link", "rejecting-cluster", "leader-change", "leader-death",
        "dispatch-death", "lost-commit-reply", "store-away", "lost-hints", "stream-down",
        "stream-flushed", "election-down",
    ]  # fmt: skip
    at: tuple[Seconds, ...] = ()
    every: Seconds = 0.0
    lasts: Seconds = 60.0
    cluster: str = ""
    """Empty: one by chance each time."""
    nodes: int = Field(default=1, ge=1)
    """How many at once; also devices, and replies."""
    labels: dict[str, str] = Field(default_factory=dict)
    """Only nodes with these."""
    delay: Seconds = 5.0
    """`late-answers`, `slow-link`: how much later."""
    of: Literal["placement", "submission", "dispatch", "any"] = "any"
    """`lost-commit-reply`, `store-away`: whose."""

    @model_validator(mode="after")
    def _some_time(self) -> Self:
        if not self.at and not self.every:
            raise ValueError("give `at` or `every`")
        return self


class Settings(Model):
    """What the services are told; names are those of their flags."""

    placement: dict[str, Any] = Field(default_factory=dict)
    dispatch: dict[str, Any] = Field(default_factory=dict)
    agent: dict[str, Any] = Field(default_factory=dict)
    placement_replicas: int = Field(default=2, ge=1)
    dispatch_replicas: int = Field(default=2, ge=1)


class Scenario(Model):
    """All of it."""

    seed: int = 0
    length: Seconds = 0.0
    """No submits and no new faults after it; 0: as long as the work and the `at` of faults."""
    settle: Seconds = 7 * DAY_S
    """The longest time for everything to end after that."""
    clusters: tuple[ClusterPart, ...] = Field(min_length=1)
    queues: tuple[QueuePart, ...] = ()
    synthetic: tuple[Synthetic, ...] = ()
    traces: tuple[Trace, ...] = ()
    settings: Settings = Settings()
    faults: tuple[Fault, ...] = ()
    sample: Seconds = 0.0
    """Time between two looks at the fleet; 0: five hundred looks."""

    @model_validator(mode="after")
    def _some_work(self) -> Self:
        if not self.synthetic and not self.traces:
            raise ValueError("give `synthetic` or `traces`")
        return self


def load(name: str) -> Scenario:
    """The scenario in a file, or one that is shipped; raises InvalidInput."""
    path = Path(name) if Path(name).exists() else SHIPPED / f"{name}.yaml"
    if not path.exists():
        raise InvalidInput((FieldViolation("scenario", _unknown(name)),))
    try:
        document = yaml.safe_load(path.read_text())
        found = Scenario.model_validate(document)
    except yaml.YAMLError as error:
        raise InvalidInput((FieldViolation(str(path), str(error)),)) from None
    except ValidationError as error:
        raise InvalidInput(tuple(_violation(each) for each in error.errors())) from None
    return _located(found, path.parent)


def shipped() -> list[str]:
    """Names of the scenarios that come with the package."""
    return sorted(path.stem for path in SHIPPED.glob("*.yaml"))


def _unknown(name: str) -> str:
    return f"there is no file {name!r}, and those shipped are {', '.join(shipped())}"


def _violation(error: Any) -> FieldViolation:
    return FieldViolation(".".join(map(str, error["loc"])), error["msg"])


def _located(scenario: Scenario, folder: Path) -> Scenario:
    """Files are relative to the scenario's own."""
    clusters = tuple(
        part if part.file is None else part.model_copy(update={"file": folder / part.file})
        for part in scenario.clusters
    )
    traces = tuple(t.model_copy(update={"file": folder / t.file}) for t in scenario.traces)
    return scenario.model_copy(update={"clusters": clusters, "traces": traces})
