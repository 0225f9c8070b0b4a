"""Single values of a job spec: how each is written, read, and described in the schema."""

import math
from collections.abc import Mapping
from typing import Annotated, Any, Final

from pydantic import BeforeValidator, Field, WithJsonSchema

from atoll.client.spec import quantities
from atoll.client.spec.accelerators import parse_accelerators
from atoll.core.model.resources import DeviceRequest
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
from atoll.core.model.validate_wishes import SIGNALS

NOT: Final = "!"
"""Before a label's value: it must not be this one."""


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


def _label_wish(value: object) -> tuple[str, ...]:
    wishes = tuple(_text(one) for one in (value if isinstance(value, list) else [value]))
    wanted = {text for text in wishes if not text.startswith(NOT)}
    if len(wanted) > 1:
        raise ValueError(f"a node has one value of a label, not {' and '.join(sorted(wanted))}")
    if wanted and len(wishes) > 1:
        raise ValueError("give the value that it must have, or those that it must not have")
    return wishes


def _amount(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise ValueError("must be a number")
    try:
        amount = float(value)
    except ValueError:
        raise ValueError(f"`{str(value)[:40]}` is not a number") from None
    if not 0 < amount < math.inf:
        raise ValueError("must be more than 0")
    return amount


def _sizes(value: object) -> dict[int, float]:
    if not isinstance(value, Mapping) or not value:
        raise ValueError("give the work per second of each size, such as {1: 4.0, 2: 7.5}")
    return dict(sorted((_size(key), _rate(key, rate)) for key, rate in value.items()))


def _size(key: object) -> int:
    text = str(key)
    if isinstance(key, bool) or not text.isdecimal() or not 1 <= int(text) <= MOST_TASKS:
        raise ValueError(f"`{text[:40]}` is no number of tasks from 1 to {MOST_TASKS:,}")
    return int(text)


def _rate(key: object, value: object) -> float:
    try:
        return _amount(value)
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None


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
Dollars = Annotated[
    int,
    BeforeValidator(quantities.cost_micros),
    WithJsonSchema({"type": ["string", "number"], "exclusiveMinimum": 0}),
]
Sizes = Annotated[
    dict[int, float],
    BeforeValidator(_sizes),
    WithJsonSchema({
        "type": "object",
        "minProperties": 1,
        "additionalProperties": {"type": ["number", "string"]},
        "propertyNames": {"pattern": "^[1-9][0-9]*$"},
    }),
]
Amount = Annotated[float, BeforeValidator(_amount), WithJsonSchema(_AMOUNT)]
Begin = Annotated[
    quantities.Begin, BeforeValidator(quantities.begin), WithJsonSchema({"type": "string"})
]
Accelerators = Annotated[
    DeviceRequest,
    BeforeValidator(parse_accelerators),
    WithJsonSchema({"type": ["string", "number", "object"], "maxProperties": 1}),
]
Signal = Annotated[str, BeforeValidator(_signal), WithJsonSchema({"type": "string"})]
LabelWish = Annotated[
    tuple[str, ...],
    BeforeValidator(_label_wish),
    WithJsonSchema({
        "type": ["string", "integer", "array"],
        "items": {"type": ["string", "integer"]},
    }),
]
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
