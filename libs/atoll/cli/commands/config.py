"""`atoll config`."""

from typing import Annotated

from cyclopts import App, Parameter

from atoll.cli import exits
from atoll.cli.options import DEFAULT_CONNECTION, Connection
from atoll.cli.render import aligned

app = App(name="config", help="Show the settings, and where each comes from.")


@app.command
def show(
    *,
    origin: Annotated[bool, Parameter(negative=())] = False,
    connection: Connection = DEFAULT_CONNECTION,
) -> int:
    """Show the settings in force.

    Flags come over environment (ATOLL_ENDPOINT), over the section `client` of the file
    (ATOLL_CONFIG, else ~/.config/atoll/config.yaml), over what runs on this machine, over defaults.

    Args:
        origin: Show where each setting comes from.
        connection: Where the control plane is.
    """
    from atoll.client.config import SETTINGS

    config = connection.config()
    rows = []
    for name in SETTINGS:
        value = getattr(config, name)
        text = ",".join(value) if isinstance(value, tuple) else str(value)
        rows.append([name, text or "-", *([config.origins.get(name, "default")] * origin)])
    print("\n".join(aligned(rows, [False] * len(rows[0]))))
    return exits.OK
