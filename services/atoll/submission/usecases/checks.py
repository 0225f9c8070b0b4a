"""What can be said of a call without the store: every violation at once, named by path."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from atoll.core.model.errors import ErrorCode, FieldViolation, InvalidInput
from atoll.core.model.priority import PriorityClass
from atoll.core.model.validate import MOST_DEPENDENCIES, check_spec
from atoll.core.model.validate_faults import Faults
from atoll.submission.usecases.drafts import MOST_JOBS, Draft, member_count

MOST_SPEC_BYTES: Final = 256 << 10
MOST_VIOLATIONS: Final = 100
"""A hostile call must not make the answer as long as itself."""


@dataclass(frozen=True, slots=True)
class Known:
    """Names that specs may use."""

    profiles: frozenset[str]
    """MIG profiles that exist anywhere."""
    classes: Mapping[str, PriorityClass]


def check_drafts(drafts: Sequence[Draft], known: Known) -> None:
    """Raise InvalidInput when a spec breaks a rule."""
    found: list[FieldViolation] = []
    for i, draft in enumerate(drafts):
        found.extend(_check_draft(draft, f"jobs[{i}]", known))
        if len(found) >= MOST_VIOLATIONS:
            break
    if not found and member_count(drafts) > MOST_JOBS:
        found.append(_too_many(member_count(drafts)))
    if found:
        raise InvalidInput(tuple(found[:MOST_VIOLATIONS]))


def ranked(draft: Draft, classes: Mapping[str, PriorityClass]) -> Draft:
    """The draft with the priority of its class, which is one of `classes`."""
    found, spec = classes[draft.spec.priority_class], draft.spec
    preempts = spec.preempts and found.preempts
    if (spec.priority, spec.preempts) == (found.priority, preempts):
        return draft
    return replace(draft, spec=replace(spec, priority=found.priority, preempts=preempts))


def _check_draft(draft: Draft, at: str, known: Known) -> list[FieldViolation]:
    # Size first: what follows looks at every character.
    if draft.size_bytes > MOST_SPEC_BYTES:
        told = f"has {draft.size_bytes:,} bytes, at most {MOST_SPEC_BYTES:,} are allowed"
        return [FieldViolation(at, told, ErrorCode.TOO_LARGE)]
    found = check_spec(draft.spec, at=at, profiles=known.profiles, classes=known.classes)
    faults = Faults()
    faults.number(f"{at}.array", draft.array, least=0, most=MOST_JOBS)
    if draft.after:
        waits = len(draft.after) + len(draft.spec.depends_on)
        faults.length(f"{at}.depends_on", waits, least=0, most=MOST_DEPENDENCIES, of="dependencies")
    return found + faults.found


def _too_many(count: int) -> FieldViolation:
    return FieldViolation(
        "jobs",
        f"{count:,} jobs with the members of arrays, at most {MOST_JOBS:,} in one call",
        ErrorCode.TOO_LARGE,
    )
