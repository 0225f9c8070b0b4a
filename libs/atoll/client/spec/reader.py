"""Reads YAML into plain values, and remembers on which line each one stands.

Bounds come first: size before anything is parsed, depth and number of values before anything is
built. Anchors and aliases are refused, for a few lines of them unfold to gigabytes. Only
`true`, `false`, `null` and decimal numbers are more than text: `on`, `012` and `1:30` stay.
"""

import re
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml

from atoll.core.model.errors import ErrorCode, FieldViolation, InvalidInput

MOST_BYTES: Final = 1_000_000
MOST_DEPTH: Final = 32
MOST_VALUES: Final = 100_000

Path = tuple[str | int, ...]


@dataclass(frozen=True, slots=True)
class Document:
    """One document of a file: its value, and the line of every path in it."""

    value: Any
    lines: dict[Path, int]


def read_documents(text: str | bytes) -> list[Document]:
    """The documents of a YAML file that are not empty; InvalidInput tells what is wrong where."""
    size = len(text.encode()) if isinstance(text, str) else len(text)
    if size > MOST_BYTES:
        message = f"{size:,} bytes; a spec has at most {MOST_BYTES:,}"
        raise _invalid(message, code=ErrorCode.TOO_LARGE)
    try:
        _check_shape(text)
        documents = [_built(node) for node in yaml.compose_all(text, Loader=_Loader)]
    except yaml.YAMLError as error:
        raise _invalid(_described(error)) from None
    except UnicodeDecodeError:
        raise _invalid("is not UTF-8 text") from None
    return [document for document in documents if document.value is not None]


class _Loader(yaml.SafeLoader):
    """YAML's tags are gone: what is not written below is text."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - the library's own attribute


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"-?(0|[1-9]\d{0,17})", "-0123456789"),
    ("float", r"-?(0|[1-9]\d{0,17})\.\d{1,17}", "-0123456789"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first)
    )


def _check_shape(text: str | bytes) -> None:
    depth = values = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise _invalid(f"line {_line(event)}: anchors and aliases are not taken; write it out")
        if tag := getattr(event, "tag", None):
            raise _invalid(f"line {_line(event)}: tags such as `{tag[:40]}` are not taken")
        values += isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent)
        depth += isinstance(event, yaml.CollectionStartEvent)
        depth -= isinstance(event, yaml.CollectionEndEvent)
        if depth > MOST_DEPTH:
            message = f"line {_line(event)}: more than {MOST_DEPTH} levels deep"
            raise _invalid(message, code=ErrorCode.TOO_LARGE)
        if values > MOST_VALUES:
            raise _invalid(f"more than {MOST_VALUES:,} values", code=ErrorCode.TOO_LARGE)


def _line(event: Any) -> int:
    return int(event.start_mark.line) + 1


def _built(node: yaml.Node) -> Document:
    lines: dict[Path, int] = {}
    return Document(_value(node, (), lines), lines)


def _value(node: yaml.Node, path: Path, lines: dict[Path, int]) -> Any:
    lines.setdefault(path, node.start_mark.line + 1)
    match node:
        case yaml.MappingNode():
            return dict(_pairs(node, path, lines))
        case yaml.SequenceNode():
            return [_value(item, (*path, n), lines) for n, item in enumerate(node.value)]
        case _:
            return _scalar(node)


def _pairs(
    node: yaml.MappingNode, path: Path, lines: dict[Path, int]
) -> Iterator[tuple[str | int, Any]]:
    seen: set[Hashable] = set()
    for key_node, value_node in node.value:
        key = _key(key_node)
        if key in seen:
            raise _invalid(f"line {key_node.start_mark.line + 1}: `{key}` is given twice")
        seen.add(key)
        lines[*path, key] = key_node.start_mark.line + 1
        yield key, _value(value_node, (*path, key), lines)


def _key(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        raise _invalid(f"line {node.start_mark.line + 1}: a key must be a text")
    return str(node.value)


def _scalar(node: yaml.Node) -> Any:
    text = str(node.value)
    match node.tag.rpartition(":")[2]:
        case "null":
            return None
        case "bool":
            return text.lower() == "true"
        case "int":
            return int(text)
        case "float":
            return float(text)
        case _:
            return text


def _described(error: yaml.YAMLError) -> str:
    mark = getattr(error, "problem_mark", None)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return f"line {mark.line + 1}: {problem}" if mark else str(problem)


def _invalid(message: str, *, code: ErrorCode = ErrorCode.INVALID_FIELD) -> InvalidInput:
    return InvalidInput((FieldViolation("spec", message, code),))
