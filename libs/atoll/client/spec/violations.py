"""Says what is wrong with a spec: which field, on which line, and what would be right."""

import difflib
from collections.abc import Iterator, Mapping
from typing import Final, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from atoll.client.spec.models import (
    NOT_YET,
    Alternative,
    AntiAffinity,
    Burst,
    Checkpoint,
    Elastic,
    Gang,
    Group,
    Resources,
    Spec,
    Spread,
    Topology,
)
from atoll.client.spec.reader import Path
from atoll.core.model.errors import ErrorCode, FieldViolation

_MODELS: Final[Mapping[str, type[BaseModel]]] = {
    "": Spec,
    "anti_affinity": AntiAffinity,
    "any_of": Alternative,
    "burst": Burst,
    "checkpoint": Checkpoint,
    "elastic": Elastic,
    "gang": Gang,
    "groups": Group,
    "resources": Resources,
    "spread": Spread,
    "topology": Topology,
}
_MESSAGES: Final = {
    "missing": "is missing",
    "model_type": "must be a mapping of keys to values",
    "dict_type": "must be a mapping of keys to values",
    "list_type": "must be a list",
    "int_type": "must be a whole number",
    "int_from_float": "must be a whole number",
    "bool_type": "must be true or false",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "too_long": "has more than {max_length} entries",
}
_SYNONYMS: Final = {
    "cmd": "run",
    "command": "run",
    "cpus_per_task": "cpus",
    "dependency": "depends_on",
    "gpu": "accelerators",
    "gpus": "accelerators",
    "mem": "memory",
    "nodes": "num_nodes",
    "partition": "queue",
    "script": "run",
    "timeout": "time_limit",
    "walltime": "time_limit",
}
_PLACES: Final = ("burst", "checkpoint", "gang", "topology", "resources", "")


def violations_of(error: ValidationError) -> Iterator[tuple[Path, FieldViolation]]:
    """What pydantic found, with the path that leads to it in the document."""
    seen: set[Path] = set()
    for found in error.errors(include_url=False, include_context=True):
        path = _document_path(found["loc"])
        if path not in seen:
            seen.add(path)
            yield path, _violation(path, found)


def messages_of(error: ValidationError, model: type[BaseModel]) -> Iterator[FieldViolation]:
    """What pydantic found in a document that is no job spec but of `model`."""
    for found in error.errors(include_url=False, include_context=True):
        path = _document_path(found["loc"])
        if found["type"] == "extra_forbidden":
            keys = _keys(model, path[:-1])
            near = difflib.get_close_matches(str(path[-1]), keys, n=1)
            told = f"did you mean `{near[0]}`?" if near else f"known are {', '.join(keys)}"
            yield FieldViolation(field_name(path), f"unknown key; {told}", ErrorCode.UNKNOWN_FIELD)
        else:
            yield FieldViolation(field_name(path), _message(found))


def with_line(violation: FieldViolation, line: int | None) -> FieldViolation:
    """The violation with its line in the message, when there is one."""
    if line is None:
        return violation
    return FieldViolation(violation.field, f"{violation.message} (line {line})", violation.code)


def line_of(path: Path, lines: Mapping[Path, int]) -> int | None:
    """Line of a path, or of the nearest thing around it that stands in the document."""
    while path not in lines and path:
        path = path[:-1]
    return lines.get(path)


def field_name(path: Path) -> str:
    """`groups[0].resources.cpus`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".") or "spec"


def _keys(model: type[BaseModel], path: Path) -> list[str]:
    """Keys of the mapping at a path."""
    for part in path:
        inner = model.model_fields[str(part)].annotation
        of = [inner, *get_args(inner)]
        model = next(each for each in of if isinstance(each, type) and issubclass(each, BaseModel))
    return [field.alias or name for name, field in model.model_fields.items()]


def _document_path(loc: tuple[int | str, ...]) -> Path:
    # Pydantic marks errors about a key itself with a part that no document holds.
    return tuple(part for part in loc if part != "[key]")


def _violation(path: Path, found: ErrorDetails) -> FieldViolation:
    if found["type"] == "extra_forbidden":
        return FieldViolation(field_name(path), _unknown(path), ErrorCode.UNKNOWN_FIELD)
    return FieldViolation(field_name(path), _message(found))


def _message(found: ErrorDetails) -> str:
    if (kind := found["type"]) == "value_error":
        return str(found["ctx"]["error"])
    if known := _MESSAGES.get(kind):
        return known.format(**found.get("ctx", {}))
    message = found["msg"]
    return f"must be {message.removeprefix('Input should be ')}" if "Input" in message else message


def _unknown(path: Path) -> str:
    key, around = str(path[-1]), path[:-1]
    model = next(
        (_MODELS[part] for part in reversed(around) if isinstance(part, str) and part in _MODELS),
        Spec,
    )
    wanted = _SYNONYMS.get(key.lower(), key.lower())
    if near := difflib.get_close_matches(wanted, list(model.model_fields), n=1):
        return f"unknown key; did you mean `{near[0]}`?"
    if elsewhere := _elsewhere(wanted):
        return f"unknown key here; did you mean `{elsewhere}`?"
    known = ", ".join(sorted(model.model_fields.keys() - set(NOT_YET)))
    return f"unknown key; known are {known}"


def _elsewhere(key: str) -> str | None:
    places = {
        name: f"{part}.{name}" if part else name
        for part in _PLACES
        for name in _MODELS[part].model_fields
    }
    near = difflib.get_close_matches(key, list(places), n=1, cutoff=0.8)
    return places[near[0]] if near else None
