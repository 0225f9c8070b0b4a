"""All commands: name, where each one is, what it does. Help and start need no more than this."""

from dataclasses import dataclass
from typing import Final

HERE: Final = "This machine"
JOBS: Final = "Jobs"
CAPACITY: Final = "Capacity"
TOOLS: Final = "Tools"


@dataclass(frozen=True, slots=True)
class Command:
    """One word after `atoll`."""

    name: str
    target: str
    """`module:attribute` below atoll.cli.commands."""
    group: str
    help: str


COMMANDS: Final = (
    Command("up", "here:up", HERE, "Start a control plane with a cluster on this machine."),
    Command("down", "here:down", HERE, "Stop it."),
    Command("status", "here:status", HERE, "Show what runs of it."),
    Command("doctor", "doctor:doctor", HERE, "Check configuration and connections."),
    Command("run", "run:run", JOBS, "Submit a command, show its output, end with its exit code."),
    Command("submit", "submit:submit", JOBS, "Submit jobs from a file, or a command."),
    Command("plan", "plan:plan", JOBS, "Tell what would become of jobs; submit nothing."),
    Command("ls", "jobs:ls", JOBS, "List jobs, newest first."),
    Command("get", "jobs:get", JOBS, "Show jobs with everything that is known of them."),
    Command("watch", "watch:watch", JOBS, "Show what happens to jobs, as it happens."),
    Command("wait", "wait:wait", JOBS, "Wait until jobs have ended."),
    Command("logs", "logs:logs", JOBS, "Show the output of a job."),
    Command("explain", "explain:explain", JOBS, "Tell why a job waits, and what would help."),
    Command("prio", "share:prio", JOBS, "Show what places a job in the order."),
    Command("cancel", "change:cancel", JOBS, "End jobs."),
    Command("hold", "change:hold", JOBS, "Keep queued jobs from being placed."),
    Command("release", "change:release", JOBS, "Let held jobs be placed again."),
    Command("set-priority", "change:set_priority", JOBS, "Change the priority of a job."),
    Command("queue", "queue:app", CAPACITY, "Create, list, change and delete queues."),
    Command("share", "share:share", CAPACITY, "Show what queues hold, deserve and borrow."),
    Command("resv", "resv:app", CAPACITY, "Book capacity in advance, and see what is booked."),
    Command("burst", "burst:app", CAPACITY, "See, limit and steer what is rented, and learn why."),
    Command("clusters", "clusters:app", CAPACITY, "List clusters, or give one up for good."),
    Command("nodes", "nodes:nodes", CAPACITY, "List nodes and what is free on them."),
    Command("gpus", "nodes:gpus", CAPACITY, "List accelerators by kind, and what is free."),
    Command("cordon", "nodes:cordon", CAPACITY, "Keep new work from a cluster or a node."),
    Command("uncordon", "nodes:uncordon", CAPACITY, "Take a cordon back."),
    Command("replay", "replay:app", TOOLS, "Replay a trace of jobs, and check the result."),
    Command("sim", "sim:app", TOOLS, "Simulate the scheduler on traces and scenarios."),
    Command("config", "config:app", TOOLS, "Show the settings, and where each comes from."),
    Command("completion", "completion:completion", TOOLS, "Print completions for a shell."),
    Command("version", "version:version", TOOLS, "Print the version."),
)

SUMMARY: Final = "Atoll: one control plane over many clusters."
_EXAMPLES: Final = (
    ("atoll up", "a control plane on this machine"),
    ("atoll run -- hostname", "run a command on it"),
    ("atoll submit train.yaml", "submit the jobs of a file"),
    ("atoll explain 1042", "why does my job wait?"),
)


def root_help() -> str:
    """What `atoll --help` prints; made by hand, for no library starts as fast."""
    lines = [SUMMARY, "", "Usage: atoll COMMAND [OPTIONS]"]
    for group in (HERE, JOBS, CAPACITY, TOOLS):
        lines += ["", f"{group}:"]
        lines += [f"  {c.name:<14} {c.help}" for c in COMMANDS if c.group == group]
    lines += ["", "Examples:", *(f"  {line:<26} {told}" for line, told in _EXAMPLES)]
    return "\n".join([*lines, "", "`atoll COMMAND --help` tells more of a command.", ""])
