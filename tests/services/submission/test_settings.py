"""What the service can be told of priority classes."""

from pathlib import Path

import pytest

from atoll.core.model.priority import DEFAULT_CLASSES, PriorityClass
from atoll.runtime.config import ConfigError, load, shown
from atoll.submission.settings import SubmissionSettings

NAME = "ATOLL_PRIORITY_CLASSES"
WANT = (PriorityClass("normal", 0), PriorityClass("paper", 70, preempts=False))


def test_classes_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, "normal=0, paper=70:no-preempt")
    loaded = load(SubmissionSettings, "submission")
    assert loaded.settings.priority_classes == WANT
    rows = {field: value for field, value, _ in shown(loaded)}
    assert rows["priority_classes"] == "normal=0,paper=70:no-preempt"


def test_classes_come_from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "atoll.yaml"
    file.write_text("submission: {priority_classes: ['normal=0', 'paper=70:no-preempt']}\n")
    monkeypatch.setenv("ATOLL_CONFIG", str(file))
    assert load(SubmissionSettings, "submission").settings.priority_classes == WANT


def test_classes_come_from_a_flag() -> None:
    words = ["--priority-classes", "normal=0,paper=70:no-preempt"]
    assert load(SubmissionSettings, "submission", words).settings.priority_classes == WANT


def test_there_are_classes_when_nobody_says_so() -> None:
    assert load(SubmissionSettings, "submission").settings.priority_classes == DEFAULT_CLASSES


@pytest.mark.parametrize("text", ["low=0", "normal=0,normal=1", "normal", "normal=0:x", ""])
def test_wrong_classes_are_refused(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(NAME, text)
    with pytest.raises(ConfigError, match="priority_classes"):
        load(SubmissionSettings, "submission")
