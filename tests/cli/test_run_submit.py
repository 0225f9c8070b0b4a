"""Submitting, following, waiting for and changing jobs, and the exit codes of all that."""

from pathlib import Path

import pytest

from atoll.core.model.errors import (
    ErrorCode,
    Exhausted,
    FieldViolation,
    InvalidInput,
    NotFound,
    Unavailable,
)
from tests.cli.conftest import Atoll
from tests.client.story import in_turn
from tests.client.world import World


def plays(exit_code: int, *lines: bytes) -> object:
    """A job that runs through at once."""

    def play(world: World, job_id: int) -> None:
        world.place(job_id)
        world.start(job_id)
        for line in lines:
            world.write(job_id, line)
        world.end(job_id, exit_code)

    return play


def test_run_shows_output_on_stdout_progress_on_stderr_and_ends_with_the_exit_code(
    atoll: Atoll, world: World
) -> None:
    world.plays = plays(3, b"hello\n", b"world\n")  # type: ignore[assignment]
    done = atoll("run", "--", "sh", "-c", "echo hello; exit 3")
    assert (done.code, done.out) == (3, "hello\nworld\n")
    assert "job 1 failed: exit code 3" in done.err
    assert world.jobs[1].spec.groups[0].run == "sh -c 'echo hello; exit 3'"


def test_run_tells_every_move(atoll: Atoll, world: World) -> None:
    def over(job: int) -> None:
        world.write(job, b"x\n")
        world.end(job)

    world.plays = lambda world, job: in_turn(
        (lambda: "QUEUED" in world.shown, lambda: world.place(job)),
        (lambda: "ASSIGNED" in world.shown, lambda: world.start(job)),
        (lambda: "RUNNING" in world.shown, lambda: over(job)),
    )
    done = atoll("run", "--", "hostname")
    assert (done.code, done.out) == (0, "x\n")
    assert done.err.splitlines() == [
        "job 1 queued",
        "job 1 assigned on here, node-0",
        "job 1 running on here, node-0",
        "job 1 succeeded",
    ]


def test_run_quiet_tells_nothing(atoll: Atoll, world: World) -> None:
    world.plays = plays(0, b"x\n")  # type: ignore[assignment]
    assert atoll("run", "--quiet", "--", "hostname").err == ""


def test_one_word_after_the_dashes_is_a_script(atoll: Atoll, world: World) -> None:
    world.plays = plays(0)  # type: ignore[assignment]
    atoll("run", "--", "date; sleep 5")
    assert (world.jobs[1].spec.groups[0].run, world.jobs[1].spec.name) == ("date; sleep 5", "date")


def test_run_goes_on_over_a_broken_stream_of_output(atoll: Atoll, world: World) -> None:
    world.plays = plays(0, b"0123456789\n")  # type: ignore[assignment]
    world.drop_after_bytes = [4, 3]
    done = atoll("run", "--", "x")
    assert (done.code, done.out) == (0, "0123456789\n")
    assert not world.drop_after_bytes, "both breaks have happened"


def test_run_shows_the_output_of_the_next_attempt_too(atoll: Atoll, world: World) -> None:
    def lost_once(job_id: int) -> None:
        world.place(job_id)
        world.start(job_id)
        world.write(job_id, b"first\n")
        world.move(job_id, "QUEUED", "REQUEUED", reason="CLUSTER_LOST")

    def again(job_id: int) -> None:
        world.output.clear()
        world.place(job_id)
        world.start(job_id)
        world.write(job_id, b"second\n")
        world.end(job_id)

    world.plays = lambda world, job: in_turn(
        (lambda: "QUEUED" in world.shown, lambda: lost_once(job)),
        (lambda: world.shown.count("QUEUED") > 1, lambda: again(job)),
    )
    done = atoll("run", "--", "x")
    assert done.code == 0
    assert done.out.endswith("second\n")
    assert "job 1 queued again (CLUSTER_LOST)" in done.err or "first" not in done.out


def test_several_tasks_print_whole_lines_with_their_rank(atoll: Atoll, world: World) -> None:
    def play(world: World, job_id: int) -> None:
        world.place(job_id)
        world.start(job_id)
        for rank, data in ((0, b"a"), (1, b"b\n"), (0, b"a\n"), (1, b"end")):
            world.write(job_id, data, rank)
        world.end(job_id)

    world.plays = play
    done = atoll("run", "--num-nodes", "2", "--", "x")
    assert done.out == "[1] b\n[0] aa\n[1] end\n"


@pytest.mark.parametrize(("state", "code"), [("CANCELLED", 103), ("FAILED", 100), ("SUCCEEDED", 0)])
def test_run_of_a_job_without_an_exit_code_ends_with_its_state(
    atoll: Atoll, world: World, state: str, code: int
) -> None:
    world.plays = lambda world, job_id: world.move(job_id, state)
    assert atoll("run", "--", "x").code == code


def test_submit_prints_a_number_for_each_job(atoll: Atoll, world: World, tmp_path: Path) -> None:
    path = tmp_path / "jobs.yaml"
    path.write_text("run: a\n---\nname: b\nrun: b\narray: 2\n")
    assert atoll("submit", str(path)).out == "1\n2\n3\n"
    assert [job.spec.name for job in world.jobs.values()] == ["jobs", "b", "b"]
    assert atoll("submit", "-o", "name", "--", "echo", "x").out == "4\n"


def test_options_make_the_spec_of_a_command(atoll: Atoll, world: World) -> None:
    done = atoll(
        "submit", "--gpus", "H100:2", "--cpus", "4", "--memory", "8GiB", "--num-nodes", "2",
        "--queue", "team.a", "--name", "train", "--array", "2", "--priority", "high",
        "--time-limit", "2h", "--env", "A=1", "--env", "B=x=y", "--label", "k=v",
        "--depends-on", "7", "--depends-on", "prepare", "--", "python", "train.py",
    )  # fmt: skip
    assert done.code == 0
    spec = world.jobs[1].spec
    shape = spec.groups[0].shapes[0]
    assert (shape.device.kind, shape.device.count, shape.cpu_milli) == ("H100", 2, 4000)
    assert (shape.memory_bytes, spec.groups[0].count) == (8 << 30, 2)
    assert (spec.queue, spec.name, spec.array, spec.priority_class) == (
        "team.a",
        "train",
        2,
        "high",
    )
    assert (spec.time_limit_s, dict(spec.labels)) == (7200.0, {"k": "v"})
    assert dict(spec.groups[0].envs) == {"A": "1", "B": "x=y"}
    assert [(d.id, d.name) for d in spec.depends_on] == [(7, ""), (0, "prepare")]


def test_options_change_what_a_file_says(atoll: Atoll, world: World, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text(
        "name: a\nrun: x\nenvs: {A: 1, B: 2}\nresources: {cpus: 3, accelerators: T4}\n"
        "gang: {min: 1, max: 4}\n"
    )
    atoll("submit", str(path), "--gpus", "H100:4", "--env", "B=3", "--num-nodes", "2")
    group = world.jobs[1].spec.groups[0]
    assert (group.shapes[0].cpu_milli, group.shapes[0].device.kind) == (3000, "H100")
    assert dict(group.envs) == {"A": "1", "B": "3"}
    assert (group.min_count, group.count) == (2, 2)


def test_a_repeated_submit_finds_the_same_job(atoll: Atoll, world: World) -> None:
    request = "0b1c2d3e-0000-4000-8000-000000000001"
    outs = {atoll("submit", "--request-id", request, "--", "x").out for _ in range(2)}
    assert (outs, len(world.jobs)) == ({"1\n"}, 1)


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (InvalidInput((FieldViolation("jobs[0].name", "no"),)), 3, "  name: no"),
        (
            InvalidInput((FieldViolation("jobs[0]", "can never run", ErrorCode.NEVER_FITS),)),
            6,
            "NEVER_FITS",
        ),
        (NotFound("no queue x", code=ErrorCode.QUEUE_NOT_FOUND), 102, "atoll queue ls"),
        (Exhausted("queue is full", code=ErrorCode.QUEUE_FULL), 4, "QUEUE_FULL"),
        (Exhausted("too many", code=ErrorCode.TOO_LARGE), 3, "TOO_LARGE"),
        (Unavailable("agent gone", code=ErrorCode.AGENT_UNREACHABLE), 5, "AGENT_UNREACHABLE"),
    ],
    ids=lambda value: getattr(value, "message", str(value)),
)
def test_refusals_end_with_the_code_of_their_kind(
    atoll: Atoll, world: World, error: Exception, code: int, told: str
) -> None:
    world.failures["SubmitJobs"] = [error]  # type: ignore[list-item]
    done = atoll("submit", "--", "x")
    assert (done.code, done.out) == (code, "")
    assert told in done.err
    assert "Traceback" not in done.err


def test_a_wrong_file_tells_everything_and_submits_nothing(
    atoll: Atoll, world: World, tmp_path: Path
) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("nmae: x\nrun: x\nimage: y\nresources:\n  accelerators: H100:0.333\n")
    done = atoll("submit", str(path))
    assert done.code == 3
    assert done.err.splitlines() == [
        "atoll: UNKNOWN_FIELD",
        "  nmae: unknown key; did you mean `name`? (line 1)",
        "  image: not supported yet; leave it out (line 3)",
        "  resources.accelerators: blocks are whole percents: use 0.33 or 0.34 (line 5)",
    ]
    assert not world.jobs


def test_a_file_that_is_not_there_is_wrong_use(atoll: Atoll) -> None:
    done = atoll("submit", "nowhere.yaml")
    assert (done.code, done.err) == (2, "atoll: nowhere.yaml: No such file or directory\n")
