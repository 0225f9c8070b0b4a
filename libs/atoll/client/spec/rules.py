"""What the keys of a spec mean together, and which ones have to wait."""

from collections import Counter
from collections.abc import Iterator, Mapping

from atoll.client.spec.models import NOT_YET, Alternative, Gang, Group, Resources, Spec
from atoll.client.spec.reader import Path
from atoll.core.model.errors import ErrorCode, FieldViolation

Found = tuple[Path, str]


def broken_rules(spec: Spec) -> Iterator[tuple[Path, FieldViolation]]:
    """Every rule that the spec breaks, with the path of the key that breaks it."""
    for path, message in (
        *_about_work(spec),
        *_about_time(spec),
        *_about_renting(spec),
        *_about_lists(spec),
        *_about_resources(spec),
    ):
        yield path, FieldViolation("", message)


def rules_of_keys(values: object) -> Iterator[tuple[Path, FieldViolation]]:
    """What can be said of the keys alone, even when values cannot be read.

    Keys that have no meaning yet are refused by name, never ignored.
    """
    if not isinstance(values, Mapping):
        return
    for key in NOT_YET:
        if values.get(key) is not None:
            message = "not supported yet; leave it out"
            yield (key,), FieldViolation(key, message, ErrorCode.NOT_SUPPORTED_YET)
    if values.get("run") is None and not values.get("groups"):
        yield ("run",), FieldViolation("run", "is missing: the command that every task runs")


def _about_work(spec: Spec) -> Iterator[Found]:
    yield from _about_size(spec, ())
    for n, group in enumerate(spec.groups):
        yield from _about_size(group, ("groups", n))
    if spec.groups:
        for key in ("run", "num_nodes", "gang"):
            if getattr(spec, key) is not None:
                yield (key,), "belongs into each of `groups` when there are groups"


def _about_time(spec: Spec) -> Iterator[Found]:
    if spec.best_effort and spec.deadline is None:
        yield ("best_effort",), "says what to do with a deadline; give one"
    if spec.elastic is None:
        return
    if spec.groups:
        yield ("elastic",), "is for jobs of one kind of task, without groups"
    elif spec.num_nodes is not None:
        yield ("num_nodes",), "leave it out: the sizes of elastic say how many tasks there may be"
    gang = spec.gang
    for size in spec.elastic.throughput:
        if gang is not None and not gang.min <= size <= gang.max:
            yield (
                ("elastic", "throughput"),
                f"{size} is not within the gang's {gang.min} to {gang.max}",
            )


def _about_renting(spec: Spec) -> Iterator[Found]:
    if spec.burst is not None and not spec.burst.allow and spec.burst.max_cost:
        yield ("burst", "max_cost"), "nothing is rented for it (allow: false), so leave it out"


def _about_size(tasks: Spec | Group, path: Path) -> Iterator[Found]:
    if tasks.gang is None:
        return
    if tasks.num_nodes is not None:
        yield (*path, "num_nodes"), "give either num_nodes or gang"
    yield from _about_gang(tasks.gang, (*path, "gang"))


def _about_gang(gang: Gang, path: Path) -> Iterator[Found]:
    if gang.min > gang.max:
        yield (*path, "min"), f"is more than max ({gang.max})"


def _about_lists(spec: Spec) -> Iterator[Found]:
    yield from _repeated([group.name for group in spec.groups], ("groups",))
    yield from _repeated(spec.ports, ("ports",))
    yield from _repeated(spec.depends_on, ("depends_on",))
    for name in sorted(spec.envs.keys() & spec.secrets.keys()):
        yield ("secrets", name), "is in envs too; give it once"
    if spec.array is not None and spec.name in spec.depends_on:
        yield ("depends_on",), "the job would wait for itself"


def _repeated(values: list[str] | list[int] | list[int | str], path: Path) -> Iterator[Found]:
    for value, count in Counter(values).items():
        if count > 1:
            yield path, f"`{value}` is given {count} times"


def _about_resources(spec: Spec) -> Iterator[Found]:
    yield from _about_request(spec.resources, ("resources",))
    for n, group in enumerate(spec.groups):
        if group.resources is not None:
            yield from _about_request(group.resources, ("groups", n, "resources"))


def _about_request(resources: Resources, path: Path) -> Iterator[Found]:
    yield from _about_memory(resources, resources, path)
    for n, alternative in enumerate(resources.any_of):
        yield from _about_memory(resources, alternative, (*path, "any_of", n))


def _about_memory(base: Alternative, chosen: Alternative, path: Path) -> Iterator[Found]:
    wanted = chosen.accelerators or base.accelerators
    if (chosen.accelerator_memory or base.accelerator_memory) is None or wanted is None:
        return
    if wanted.count > 1 or wanted.profile or not wanted.whole:
        message = "asks for a share of one accelerator by memory; give its kind alone, such as H100"
        yield (*path, "accelerator_memory"), message
