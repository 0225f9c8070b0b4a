"""The job spec as its YAML looks. Everything that a key means is in its description.

These models only parse. What keys mean together is in `rules`, the way to the wire in `convert`.
"""

from typing import Annotated, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from atoll.client.spec.fields import (
    Accelerators,
    Amount,
    Begin,
    Bytes,
    Count,
    Cpus,
    Dependencies,
    Dollars,
    LabelWish,
    Name,
    NotYet,
    Ports,
    QueuePath,
    Script,
    Seconds,
    Signal,
    Sizes,
    Text,
    Variable,
)
from atoll.core.model.priority import DEFAULT_CLASS
from atoll.core.model.spec import NODE_LEVEL
from atoll.core.model.validate import (
    MOST_DEPENDENCIES,
    MOST_GROUPS,
    MOST_PORTS,
    MOST_RETRIES,
    MOST_SHAPES,
)

NOT_YET: Final = ("image", "mounts", "workdir")


def _anti_affinity(value: object) -> object:
    return {"name": value} if isinstance(value, str) else value


class Strict(BaseModel):
    """A mapping whose keys are all known."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, arbitrary_types_allowed=True, use_attribute_docstrings=True
    )


class Alternative(Strict):
    """One way to satisfy a task; what it leaves out comes from `resources` around it."""

    accelerators: Accelerators | None = None
    """`H100`, `H100:8`, `H100:0.25` (a share), `H100:1g.10gb` or `1g.10gb:2` (MIG slices), `8`."""
    accelerator_memory: Bytes | None = None
    """Least memory of the share of one accelerator, such as `10GiB`."""
    cpus: Cpus | None = None
    """CPUs: `2`, `0.5`, `500m`; 1 when left out."""
    memory: Bytes | None = None
    """Memory with its unit: `16GiB`; 1GiB when left out."""
    labels: dict[Text, LabelWish] = Field(default_factory=dict)
    """Node labels that must match; `!a`: any value but `a`; `!`: not there; a list: all of them."""


class Resources(Alternative):
    """What every task takes from its one node."""

    any_of: list[Alternative] = Field(default_factory=list, max_length=MOST_SHAPES)
    """Alternatives in order of preference."""


class Gang(Strict):
    """Tasks that start together, as many as there is room for."""

    min: Count
    """The job may start with this many."""
    max: Count
    """Tasks wanted."""


class Spread(Strict):
    """How many tasks one domain may have."""

    level: Name = NODE_LEVEL
    """Level of the domain, such as `rack`; `node`: each node is one."""
    most: Count = 1
    """Tasks of a group that one domain may have."""


class AntiAffinity(Strict):
    """Keeps jobs of one queue apart."""

    name: Name
    """Jobs of one queue that give the same name never share a domain."""
    level: Name = NODE_LEVEL
    """Level of the domain, such as `rack`; `node`: each node is one."""


class Group(Strict):
    """Identical tasks of a job; all groups start together or not at all."""

    name: Name
    """Name within the job."""
    num_nodes: Count | None = None
    """Tasks; 1 when left out."""
    gang: Gang | None = None
    """In place of num_nodes: a job that may start smaller."""
    run: Script
    """Shell script that every task runs."""
    setup: Text | None = None
    """Shell script that runs before `run`; the job's own when left out."""
    envs: dict[Variable, Text] = Field(default_factory=dict)
    """Environment, on top of the job's."""
    resources: Resources | None = None
    """What a task takes; the job's own when left out."""
    spread: Spread | None = None
    """How many of its tasks one domain may have; the job's own when left out."""


class Topology(Strict):
    """All tasks inside one domain."""

    same: Name
    """Level of the domain, such as `rack`."""
    required: Annotated[bool, Field(strict=True)] = True
    """False: preferred only."""


class Checkpoint(Strict):
    """How a run is told to save its work before it is stopped."""

    signal: Signal = "SIGUSR1"
    """Signal that asks for it."""
    grace: Seconds | None = None
    """From that signal to SIGTERM."""
    interval: Seconds | None = None
    """Between the checkpoints that the run takes by itself."""


class Elastic(Strict):
    """How fast the job runs at each size, so that it may grow and shrink while it runs."""

    throughput: Sizes
    """Work per second by number of tasks: `{1: 4.0, 2: 7.5, 4: 13}`."""
    work: Amount
    """Work to be done, in the unit of the throughput."""
    rescale_cost: Seconds | None = None
    """Nothing is done for so long after each change of size; 30 s when left out."""


class Burst(Strict):
    """What the job says of rented capacity; its queue's policy is narrowed, never widened."""

    allow: Annotated[bool, Field(strict=True)] = True
    """False: it waits for capacity that is not rented."""
    max_cost: Dollars | None = None
    """Dollars that renting for it may cost at most, such as `12.50` or `$12.50`."""


class Spec(Strict):
    """One job."""

    name: Name | None = None
    """Name; from the file or the command when left out."""
    queue: QueuePath = "default"
    """Queue."""
    priority_class: Name = DEFAULT_CLASS
    """Priority class, one of those that the platform is set up with."""
    labels: dict[Text, Text] = Field(default_factory=dict)
    """Labels to find the job by."""
    num_nodes: Count | None = None
    """Tasks, each on one node; 1 when left out. They start together or not at all."""
    gang: Gang | None = None
    """In place of num_nodes: a job that may start smaller."""
    run: Script | None = None
    """Shell script that every task runs."""
    setup: Text | None = None
    """Shell script that runs before `run`."""
    groups: list[Group] = Field(default_factory=list, max_length=MOST_GROUPS)
    """In place of run: several kinds of tasks in one job."""
    envs: dict[Variable, Text] = Field(default_factory=dict)
    """Environment of the tasks."""
    secrets: dict[Variable, Text] = Field(default_factory=dict)
    """Environment that no API shows again."""
    output: Text = ""
    """Path pattern for captured output (`%j` job, `%t` rank); the agent's own folder otherwise."""
    ports: Ports = Field(default_factory=list, max_length=MOST_PORTS)
    """TCP ports that each task listens on."""
    resources: Resources = Field(default_factory=Resources)
    """What every task takes from its one node."""
    time_limit: Seconds | None = None
    """The run is stopped after it: `2h30m`, `9000` (seconds), `1-12:00:00`."""
    deadline: Begin | None = None
    """To be done by: an ISO 8601 time with its zone, or a while from the submit such as `2h30m`."""
    best_effort: Annotated[bool, Field(strict=True)] = False
    """True: take the job even when its deadline cannot be met."""
    elastic: Elastic | None = None
    """The tasks may become more and fewer while it runs, between the smallest and largest size."""
    begin: Begin | None = None
    """Not before: an ISO 8601 time with its zone, or a while such as `+2h`."""
    depends_on: Dependencies = Field(default_factory=list, max_length=MOST_DEPENDENCIES)
    """Jobs that must have succeeded first: numbers, or names of jobs submitted with it."""
    array: Annotated[int, Field(strict=True, ge=1, le=1000)] | None = None
    """Number of copies; each is a job of its own and finds its place in ATOLL_ARRAY_INDEX."""
    topology: Topology | None = None
    """All tasks inside one domain."""
    spread: Spread | None = None
    """How many tasks of a group one domain may have."""
    anti_affinity: Annotated[AntiAffinity, BeforeValidator(_anti_affinity)] | None = None
    """A name; jobs of one queue that give the same one never share a node."""
    preemptible: Annotated[bool, Field(strict=True)] = True
    """False: it is never stopped for others."""
    preempts: Annotated[bool, Field(strict=True)] = True
    """False: it stops nobody, whatever its priority."""
    restart_cost: Seconds | None = None
    """From a new start until it goes on where its last checkpoint was."""
    checkpoint: Checkpoint | None = None
    """How a run is told to save its work before it is stopped."""
    reservation: Text = ""
    """Name of a booking: the job runs in its windows only."""
    burst: Burst | None = None
    """Whether it may run on rented capacity; as its queue may when left out."""
    on_lost: Literal["hold", "requeue"] = "hold"
    """When the cluster falls silent: wait for it, or run elsewhere."""
    retries: Annotated[int, Field(strict=True, ge=0, le=MOST_RETRIES)] = 0
    """How often a failed run is tried again."""
    image: NotYet = None
    mounts: NotYet = None
    workdir: NotYet = None
