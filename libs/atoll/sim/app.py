"""The command line of the simulator; a command's module is loaded when it is named."""

from typing import Final

from cyclopts import App

COMMANDS: Final[tuple[tuple[str, str], ...]] = (
    ("run", "Run a scenario through the real services, with faults."),
    ("backfill", "Replay a log of a parallel machine under a policy of time."),
    ("pack", "Pack the pods of an openb list."),
    ("deadlines", "Admit and run the jobs of an ElasticFlow trace."),
    ("fairness", "Run virtual clusters each by itself and all in one."),
    ("spot", "Run a job with a deadline on spot capacity or on demand."),
    ("burst", "Rent for an ElasticFlow cluster that is too small at its peaks."),
    ("reservations", "Book a part of a parallel machine, with and without lending."),
    ("forecast", "Forecast the GPUs in use of the ElasticFlow clusters."),
)
"""(name, help): the command `name` is `name` in `atoll.sim.commands.<name>`."""

app = App(name="sim", help="Simulate the scheduler on a virtual clock.", help_format="plaintext")
for name, text in COMMANDS:
    app.command(f"atoll.sim.commands.{name}:{name}", name=name, help=text)
