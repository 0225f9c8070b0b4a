"""What pictures have in common. matplotlib is loaded when one is drawn."""

from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from atoll.cli.failures import WrongUse

WIDTH_IN: Final = 12.0
DPI: Final = 120


def plots(heights_in: Sequence[float], *, sharex: bool = True) -> tuple[Any, list[Any]]:
    """A figure with one plot below the other."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise WrongUse("--png needs matplotlib: pip install 'atoll[sim]'") from None
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(
        len(heights_in),
        1,
        figsize=(WIDTH_IN, sum(heights_in) + 0.8),
        sharex=sharex,
        height_ratios=list(heights_in),
        layout="constrained",
        squeeze=False,
    )
    return figure, list(axes[:, 0])


def clock_axis(axis: Any) -> None:
    """Times of day in UTC."""
    from matplotlib import dates

    made: Any = dates
    locator = made.AutoDateLocator(tz=UTC)
    axis.xaxis.set_major_locator(locator)
    axis.xaxis.set_major_formatter(made.ConciseDateFormatter(locator, tz=UTC))
    axis.set_xlabel("UTC")


def saved(figure: Any, path: Path) -> None:
    """Write the picture, and let go of it."""
    import matplotlib.pyplot as plt

    figure.savefig(path, dpi=DPI)
    plt.close(figure)


def time_of(at: float) -> datetime:
    """Unix seconds as matplotlib takes them."""
    return datetime.fromtimestamp(at, UTC)
