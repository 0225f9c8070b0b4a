"""From a file, a text or a mapping to specs; everything wrong is told at once."""

import re
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Any, Final

from pydantic import ValidationError

from atoll.client.spec.models import Spec
from atoll.client.spec.reader import MOST_BYTES, Document, Path, read_documents
from atoll.client.spec.rules import broken_rules, rules_of_keys
from atoll.client.spec.violations import field_name, line_of, violations_of, with_line
from atoll.core.model.errors import FieldViolation, InvalidInput

MOST_VIOLATIONS: Final = 50
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]+")
_UNNAMED: Final = "job"

Found = tuple[Path, FieldViolation]


def parse_spec(values: Mapping[str, Any]) -> Spec:
    """The spec that a mapping describes; InvalidInput names every field that is wrong."""
    spec, found = _parsed(values)
    if spec is None or found:
        raise InvalidInput(tuple(_at(path, item, "") for path, item in found[:MOST_VIOLATIONS]))
    return spec


def parse_text(text: str | bytes, *, name: str = "") -> list[Spec]:
    """The specs of a YAML text, one for each document; `name` is for those that give none."""
    documents = read_documents(text)
    if not documents:
        raise InvalidInput((FieldViolation("spec", "is empty"),))
    specs: list[Spec] = []
    wrong: list[FieldViolation] = []
    for n, document in enumerate(documents):
        spec, found = _parsed(document.value)
        prefix = f"jobs[{n}]" if len(documents) > 1 else ""
        found.sort(key=lambda item: line_of(item[0], document.lines) or 0)
        wrong += [_located(document, item, prefix) for item in found]
        specs += [_named(spec, name)] if spec else []
    if wrong:
        raise InvalidInput(tuple(wrong[:MOST_VIOLATIONS]))
    return specs


def read_spec_file(path: str | FilePath) -> list[Spec]:
    """The specs of a YAML file. At most one byte more than is allowed is read."""
    path = FilePath(path)
    with path.open("rb") as file:
        return parse_text(file.read(MOST_BYTES + 1), name=path.stem)


def job_name(text: str) -> str:
    """A valid name made from any text."""
    return _NOT_IN_NAMES.sub("-", text).strip("-._")[:128] or _UNNAMED


def _parsed(values: object) -> tuple[Spec | None, list[Found]]:
    of_keys = list(rules_of_keys(values))
    try:
        spec = Spec.model_validate(values)
    except ValidationError as error:
        return None, [*violations_of(error), *of_keys]
    return spec, [*broken_rules(spec), *of_keys]


def _named(spec: Spec, name: str) -> Spec:
    return spec if spec.name else spec.model_copy(update={"name": job_name(name)})


def _located(document: Document, found: Found, prefix: str) -> FieldViolation:
    path, violation = found
    return with_line(_at(path, violation, prefix), line_of(path, document.lines))


def _at(path: Path, violation: FieldViolation, prefix: str) -> FieldViolation:
    field = ".".join(part for part in (prefix, field_name(path)) if part)
    return FieldViolation(field, violation.message, violation.code)
