"""From what callers hand to `submit` to specs of the wire."""

import os
from collections.abc import Mapping, Sequence
from pathlib import PurePath
from typing import Any, TypeAlias

from atoll.api.common.v1 import common_pb2
from atoll.client.spec import Spec, job_name, parse_spec, read_spec_file, to_proto
from atoll.core.model.errors import FieldViolation, InvalidInput

OneSpec: TypeAlias = Spec | Mapping[str, Any] | str | os.PathLike[str]
"""A parsed spec, a mapping with the keys of the YAML, or the path of a YAML file."""

ManySpecs: TypeAlias = Sequence[Spec | Mapping[str, Any] | os.PathLike[str]] | list[str]
"""Any number of them."""


def is_many(given: OneSpec | ManySpecs) -> bool:
    """True for a list of specs."""
    return isinstance(given, Sequence) and not isinstance(given, str)


def job_specs(given: OneSpec | ManySpecs, *, now: float) -> list[common_pb2.JobSpec]:
    """The specs to submit at `now` (unix seconds).

    Raises InvalidInput with every wrong field, and for what is given as one but makes several
    jobs; OSError for a file that cannot be read.
    """
    parts = given if isinstance(given, Sequence) and not isinstance(given, str) else [given]
    specs = [to_proto(spec, now=now) for part in parts for spec in _parsed(part)]
    if not is_many(given) and len(one_for_each_job(specs)) > 1:
        raise InvalidInput((FieldViolation("spec", "makes several jobs: submit it in a list"),))
    return specs


def one_for_each_job(specs: Sequence[common_pb2.JobSpec]) -> list[common_pb2.JobSpec]:
    """The spec of each job that `specs` make: those of arrays are repeated."""
    return [spec for spec in specs for _ in range(spec.array or 1)]


def about_one(error: InvalidInput, specs: Sequence[common_pb2.JobSpec]) -> InvalidInput:
    """The server's refusal, without the number of the job when only one was sent."""
    if len(specs) != 1:
        return error
    told = tuple(
        FieldViolation(_without_number(found.field), found.message, found.code)
        for found in error.violations
    )
    return InvalidInput(told, code=error.code)


def planned_spec(given: OneSpec, *, now: float) -> common_pb2.JobSpec:
    """The one spec of a dry run; InvalidInput for a file with several documents."""
    specs = [to_proto(spec, now=now) for spec in _parsed(given)]
    if len(specs) != 1:
        raise InvalidInput((FieldViolation("spec", "has several documents: plan them one by one"),))
    return specs[0]


def about_plan(error: InvalidInput) -> InvalidInput:
    """The server's refusal, with fields as the file has them."""
    told = tuple(
        FieldViolation(found.field.removeprefix("spec.") or "spec", found.message, found.code)
        for found in error.violations
    )
    return InvalidInput(told, code=error.code)


def _without_number(field: str) -> str:
    return field.removeprefix("jobs[0]").removeprefix(".") or "spec"


def _parsed(part: OneSpec) -> list[Spec]:
    if isinstance(part, Spec):
        return [_named(part)]
    if isinstance(part, Mapping):
        return [_named(parse_spec(part))]
    return read_spec_file(os.fspath(part))


def _named(spec: Spec) -> Spec:
    if spec.name:
        return spec
    words = (spec.run or "").split()
    name = job_name(PurePath(words[0]).name) if words else job_name("")
    return spec.model_copy(update={"name": name})
