"""`atoll sim`: comes with an extra of its own; here it is only found by name."""

import importlib
from typing import Annotated, Final

from cyclopts import App, Parameter

from atoll.core.model.errors import ErrorCode, Unavailable

MODULE: Final = "atoll.sim.app"
EXTRA: Final = "pip install 'atoll[sim]'"


def _found() -> App:
    try:
        found: App = importlib.import_module(MODULE).app
    except ImportError as error:
        return _missing(error.name or str(error))
    return found


def _missing(what: str) -> App:
    missing = App(name="sim", help=f"Needs the simulator: {EXTRA}")

    @missing.default
    def command(
        *words: Annotated[str, Parameter(allow_leading_hyphen=True, show=False)],
    ) -> int:
        raise Unavailable(
            f"`atoll sim` needs the simulator ({what} is missing): {EXTRA}",
            code=ErrorCode.UNAVAILABLE,
        )

    return missing


app = _found()
