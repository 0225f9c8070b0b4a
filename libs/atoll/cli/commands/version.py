"""`atoll version`."""

from importlib.metadata import version as installed


def version() -> int:
    """Print the version."""
    print(f"atoll {installed('atoll')}")
    return 0
