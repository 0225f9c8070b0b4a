"""The catalogue of mutants fits the code, and verdicts are not given away."""

from pathlib import Path

import pytest

from tools.mutant_catalogue import MUTANTS, Edit, Mutant
from tools.mutants import ROOT, Result, Verdict, judged, mutated, replaced, table

GUARDS = {"fence", "inbox", "unique request key", "gang unwind", "stop_after"}
ONE = Mutant("fence", "nobody asks", (), ())


def test_every_guard_has_mutants() -> None:
    assert {mutant.guard for mutant in MUTANTS} == GUARDS


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: f"{m.guard}: {m.without}")
def test_a_mutant_fits_the_code_still_compiles_and_has_tests(mutant: Mutant) -> None:
    for edit in mutant.edits:
        text = replaced((ROOT / edit.path).read_text(), edit)
        compile(text, edit.path, "exec")
    for test in mutant.tests:
        path, _, name = test.partition("::")
        assert f"def {name}(" in (ROOT / path).read_text() if name else (ROOT / path).exists()


@pytest.mark.parametrize(
    ("code", "said", "verdict"),
    [
        (1, "FAILED tests/a.py::test_it - assert 1 == 2\n", Verdict.CAUGHT),
        (0, "1 passed", Verdict.SURVIVED),
        (1, "ERROR tests/a.py::test_it - no server\n", Verdict.BROKEN),
        (2, "FAILED tests/a.py::test_it\n", Verdict.BROKEN),
        (5, "no tests ran", Verdict.BROKEN),
        (-1, "not done", Verdict.BROKEN),
    ],
)
def test_only_a_failed_test_is_a_catch(code: int, said: str, verdict: Verdict) -> None:
    assert judged(ONE, code, said).verdict is verdict


@pytest.mark.parametrize(
    ("said", "test"),
    [
        ("FAILED tests/a.py::test_it - assert 1 == 2\n", "test_it"),
        ("FAILED tests/a.py::test_it[one case]\n1 failed", "test_it[one case]"),
        ("FAILED tests/a.py::test_it[a case: b] - TimeoutError", "test_it[a case: b]"),
    ],
)
def test_the_test_that_failed_is_named(said: str, test: str) -> None:
    assert judged(ONE, 1, said).detail == test


def test_a_tree_is_as_before_after_a_mutant(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_text("x = 1\n")
    before = file.stat().st_mtime_ns
    with mutated(tmp_path, (Edit("a.py", "1", "2"),)):
        assert file.read_text() == "x = 2\n"
    assert file.read_text() == "x = 1\n"
    assert file.stat().st_mtime_ns == before


@pytest.mark.parametrize("text", ["", "x x"])
def test_an_edit_that_does_not_fit_is_told(text: str) -> None:
    with pytest.raises(ValueError, match="places like"):
        replaced(text, Edit("a.py", "x", "y"))


def test_the_table_says_what_survived() -> None:
    shown = table([Result(ONE, Verdict.SURVIVED, ""), Result(ONE, Verdict.CAUGHT, "test_it")])
    assert shown.splitlines()[1:] == [
        "fence  nobody asks  SURVIVED",
        "fence  nobody asks  caught    test_it",
    ]
