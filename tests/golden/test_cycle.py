"""Every case in `cases` is decided as it says; `python -m tests.golden.update` writes them anew."""

from pathlib import Path

import pytest

from tests.golden.language import answer

CASES = sorted((Path(__file__).parent / "cases").glob("*.txt"))


def sentence(path: Path) -> str:
    return path.read_text().splitlines()[0].removeprefix("# ")


@pytest.mark.parametrize("path", CASES, ids=sentence)
def test_case(path: Path) -> None:
    text = path.read_text()
    assert answer(text) == text.partition("\n---\n")[2]


def test_the_plan_does_not_depend_on_the_order_in_which_nodes_became_known() -> None:
    text = (CASES[0].parent / "topology_preferred.txt").read_text()
    lines = text.partition("\n---\n")[0].splitlines()
    nodes = [line for line in lines if line.startswith("node")]
    others = [line for line in lines if not line.startswith("node")]
    turned = "\n".join([others[1], *reversed(nodes), *others[2:]])
    assert answer(turned) == text.partition("\n---\n")[2]
