"""Files that commands write in the end: whether they can be is found out before the work."""

from pathlib import Path

from atoll.core.model.errors import FieldViolation, InvalidInput


def check_out(path: Path | None) -> None:
    """Raises InvalidInput when there is no folder for a file, or a folder in its place."""
    if path is None:
        return
    if path.is_dir():
        raise InvalidInput((FieldViolation("out", f"{path} is a folder"),))
    if not path.parent.is_dir():
        raise InvalidInput((FieldViolation("out", f"there is no folder {path.parent}"),))


def check_seed(seed: int) -> None:
    """Raises InvalidInput for a seed that no generator takes."""
    if seed < 0:
        raise InvalidInput((FieldViolation("seed", "0 or more"),))
