"""From the options of `run` and `submit` to specs: a command, or a file that options change."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from cyclopts import Parameter

from atoll.cli.failures import WrongUse
from atoll.cli.pairs import labels_of
from atoll.client.spec import Spec, job_name, parse_spec, parse_text, read_spec_file
from atoll.client.spec.reader import MOST_BYTES

STDIN: Final = "/dev/stdin"
Words = Annotated[tuple[str, ...], Parameter(negative=())]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Wanted:
    """What the job needs."""

    gpus: Annotated[
        str | None, Parameter(help="Accelerators of each task: H100:2, H100:0.25, 1g.10gb:2, 8.")
    ] = None
    cpus: Annotated[str | None, Parameter(help="CPUs of each task; 1 if nothing is said.")] = None
    memory: Annotated[
        str | None, Parameter(help="Memory of each task: 16GiB; 1GiB if nothing is said.")
    ] = None
    num_nodes: Annotated[int | None, Parameter(help="Tasks, each on one node.")] = None
    queue: Annotated[str | None, Parameter(name=("--queue", "-q"), help="Queue.")] = None
    name: Annotated[str | None, Parameter(help="Name of the job.")] = None
    array: Annotated[int | None, Parameter(help="Copies; each is a job of its own.")] = None
    priority: Annotated[
        str | None, Parameter(help="Priority class, such as low, normal, high or urgent.")
    ] = None
    time_limit: Annotated[
        str | None, Parameter(help="Stop it after 2h30m, 9000 (seconds) or 1-12:00:00.")
    ] = None
    env: Annotated[Words, Parameter(help="Environment, NAME=VALUE; may be given again.")] = ()
    label: Annotated[Words, Parameter(help="Label, KEY=VALUE; may be given again.")] = ()
    depends_on: Annotated[
        Words, Parameter(help="Job that must have succeeded first; may be given again.")
    ] = ()

    def specs(self, file: str | None, command: str, *, verb: str) -> list[Spec]:
        """The specs of a file or of a command, whichever is given."""
        if file and command:
            raise WrongUse("give either a file or a command behind `--`")
        if file:
            return self.of_file(file)
        if not command:
            raise WrongUse(f"say what to {verb}: atoll {verb} FILE, or atoll {verb} -- COMMAND")
        return [self.of_command(command)]

    def of_command(self, script: str) -> Spec:
        """The spec of a command; InvalidInput names what is wrong."""
        words = script.split()
        spec = parse_spec({"run": script, **self._keys()})
        if spec.name:
            return spec
        name = job_name(words[0].rpartition("/")[2]) if words else job_name("")
        return spec.model_copy(update={"name": name})

    def of_file(self, path: str) -> list[Spec]:
        """The specs of a file, or of standard input, each changed by what was given beside it."""
        if path == STDIN:
            specs = parse_text(sys.stdin.buffer.read(MOST_BYTES + 1), name="stdin")
        else:
            specs = read_spec_file(path)
        given = self._keys()
        return [_changed(spec, given) for spec in specs] if given else specs

    def _keys(self) -> dict[str, Any]:
        keys = {
            "name": self.name,
            "queue": self.queue,
            "num_nodes": self.num_nodes,
            "array": self.array,
            "priority_class": self.priority,
            "time_limit": self.time_limit,
            "envs": labels_of(self.env, "env"),
            "labels": labels_of(self.label, "label"),
            "depends_on": [int(job) if job.isdigit() else job for job in self.depends_on],
            "resources": _given({
                "accelerators": self.gpus,
                "cpus": self.cpus,
                "memory": self.memory,
            }),
        }
        return _given(keys)


def _given(keys: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in keys.items() if value not in (None, {}, [])}


def _changed(spec: Spec, given: Mapping[str, Any]) -> Spec:
    # Parsed with a command of its own, for options alone make no job.
    options = parse_spec({"run": ":", **given})
    changes: dict[str, Any] = {key: getattr(options, key) for key in given}
    for key in ("envs", "labels"):
        if key in changes:
            changes[key] = {**getattr(spec, key), **changes[key]}
    if "resources" in changes:
        changes["resources"] = spec.resources.model_copy(
            update={key: getattr(options.resources, key) for key in given["resources"]}
        )
    if "num_nodes" in changes:
        _require_no_groups([spec])
        changes["gang"] = None
    return spec.model_copy(update=changes)


def _require_no_groups(specs: Sequence[Spec]) -> None:
    if any(spec.groups for spec in specs):
        raise WrongUse("--num-nodes: the file has groups; change the number in each of them")
