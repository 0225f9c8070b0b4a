"""The job spec as its YAML looks. Everything that a key means is in its description.

These models only parse. What keys mean together is in `rules`, the way to the wire in `convert`.
"""

from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema

from atoll.client.spec import quantities
from atoll.client.spec.accelerators import parse_accelerators
from atoll.core.model.resources import DeviceRequest
from atoll.core.model.validate import (
    MOST_DEPENDENCIES,
    MOST_GROUPS,
    MOST_PORTS,
    MOST_RETRIES,
    MOST_SHAPES,
    SIGNALS,
)
from atoll.core.model.validate_shape import MOST_TASKS
from atoll.core.model.validate_text import (
    A_NAME,
    A_QUEUE,
    A_VARIABLE,
    MOST_NAME,
    MOST_QUEUE,
    MOST_VARIABLE_NAME,
    NAME,
    QUEUE,
    VARIABLE,
)

NOT_YET: Final = ("image", "mounts", "workdir", "deadline", "reservation", "burst")


def _text(value: object) -> str:
    if isinstance(value, bool | float):
        shown = str(value).lower() if isinstance(value, bool) else str(value)
        raise ValueError(f'put it in quotes to say which text is meant, such as "{shown}"')
    if not isinstance(value, int | str):
        raise ValueError("must be a text")
    text = str(value)
    if "\0" in text:
        raise ValueError("must not contain a NUL character")
    return text


def _name(value: object) -> str:
    if len(text := _text(value)) > MOST_NAME or not NAME.fullmatch(text):
        raise ValueError(f"use 1 to {MOST_NAME} {A_NAME}")
    return text


def _queue(value: object) -> str:
    if len(text := _text(value)) > MOST_QUEUE or not QUEUE.fullmatch(text):
        raise ValueError(f"use a path such as team.project: {A_QUEUE}")
    return text


def _script(value: object) -> str:
    if not (text := _text(value)).strip():
        raise ValueError("is empty; write the command to run")
    return text


def _variable(value: object) -> str:
    if len(text := _text(value)) > MOST_VARIABLE_NAME or not VARIABLE.fullmatch(text):
        raise ValueError(f"`{text[:40]}` is no name of an environment variable: use {A_VARIABLE}")
    return text


def _signal(value: object) -> str:
    text = _text(value).upper()
    name = text if text.startswith("SIG") else f"SIG{text}"
    if name not in SIGNALS:
        raise ValueError(f"use one of {', '.join(sorted(SIGNALS))}")
    return name


def _job_ref(value: object) -> int | str:
    if isinstance(value, int) and not isinstance(value, bool) and value > 0:
        return value
    if isinstance(value, str) and NAME.fullmatch(value):
        return value
    raise ValueError("give the number of a job, or the name of one that is submitted with it")


def _listed(value: object) -> object:
    return [value] if isinstance(value, int | str) else value


_AMOUNT: Final = {"type": ["string", "number"]}

Text = Annotated[str, BeforeValidator(_text), WithJsonSchema({"type": ["string", "integer"]})]
Name = Annotated[
    str, BeforeValidator(_name), WithJsonSchema({"type": "string", "pattern": f"^{NAME.pattern}$"})
]
QueuePath = Annotated[
    str,
    BeforeValidator(_queue),
    WithJsonSchema({"type": "string", "maxLength": MOST_QUEUE, "pattern": f"^{QUEUE.pattern}$"}),
]
Script = Annotated[
    str, BeforeValidator(_script), WithJsonSchema({"type": "string", "minLength": 1})
]
Variable = Annotated[
    str,
    BeforeValidator(_variable),
    WithJsonSchema({"type": "string", "pattern": f"^{VARIABLE.pattern}$"}),
]
Cpus = Annotated[int, BeforeValidator(quantities.cpu_milli), WithJsonSchema(_AMOUNT)]
Bytes = Annotated[int, BeforeValidator(quantities.memory_bytes), WithJsonSchema({"type": "string"})]
Seconds = Annotated[float, BeforeValidator(quantities.duration_s), WithJsonSchema(_AMOUNT)]
Begin = Annotated[
    quantities.Begin, BeforeValidator(quantities.begin), WithJsonSchema({"type": "string"})
]
Accelerators = Annotated[
    DeviceRequest,
    BeforeValidator(parse_accelerators),
    WithJsonSchema({"type": ["string", "number", "object"], "maxProperties": 1}),
]
Signal = Annotated[str, BeforeValidator(_signal), WithJsonSchema({"type": "string"})]
Count = Annotated[int, Field(strict=True, ge=1, le=MOST_TASKS)]
Port = Annotated[int, Field(strict=True, ge=1, le=65_535)]
Ports = Annotated[list[Port], BeforeValidator(_listed)]
JobRef = Annotated[
    int | str, BeforeValidator(_job_ref), WithJsonSchema({"type": ["integer", "string"]})
]
Dependencies = Annotated[list[JobRef], BeforeValidator(_listed)]
NotYet = Annotated[
    Any,
    WithJsonSchema({"type": "null", "description": "Not supported yet; refused when it is given."}),
]


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
    labels: dict[Text, Text] = Field(default_factory=dict)
    """Node labels that must match."""


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


class Spec(Strict):
    """One job."""

    name: Name | None = None
    """Name; from the file or the command when left out."""
    queue: QueuePath = "default"
    """Queue."""
    priority_class: Literal["low", "normal", "high", "critical"] = "normal"
    """Priority class."""
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
    begin: Begin | None = None
    """Not before: an ISO 8601 time with its zone, or a while such as `+2h`."""
    depends_on: Dependencies = Field(default_factory=list, max_length=MOST_DEPENDENCIES)
    """Jobs that must have succeeded first: numbers, or names of jobs submitted with it."""
    array: Annotated[int, Field(strict=True, ge=1, le=1000)] | None = None
    """Number of copies; each is a job of its own and finds its place in ATOLL_ARRAY_INDEX."""
    topology: Topology | None = None
    """All tasks inside one domain."""
    checkpoint: Checkpoint | None = None
    """How a run is told to save its work before it is stopped."""
    on_lost: Literal["hold", "requeue"] = "hold"
    """When the cluster falls silent: wait for it, or run elsewhere."""
    retries: Annotated[int, Field(strict=True, ge=0, le=MOST_RETRIES)] = 0
    """How often a failed run is tried again."""
    image: NotYet = None
    mounts: NotYet = None
    workdir: NotYet = None
    deadline: NotYet = None
    reservation: NotYet = None
    burst: NotYet = None
