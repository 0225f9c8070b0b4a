"""What `atoll doctor` asks: is this machine fit for a stack, and is the one that runs well?"""

from atoll.embedded import checks_machine, checks_running
from atoll.embedded.launch import running
from atoll.embedded.layout import Layout
from atoll.embedded.told import Told


async def run(layout: Layout) -> list[Told]:
    """All checks; those that need a running stack only when one runs."""
    report = running(layout)
    told = list(checks_machine.run(layout, up=report is not None))
    if report is None:
        told.append(Told("`atoll up`: does not run here", ok=True, hint="start it: atoll up"))
        return told
    return [*told, *await checks_running.run(layout, report)]
