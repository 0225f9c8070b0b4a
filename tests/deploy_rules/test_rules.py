"""Rules and dashboard ask for what is there, and every alert has its runbook."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.deploy_rules.names import (
    FOLDER,
    exported_names,
    names_in_rules,
    panels,
    recorded_names,
    rules,
)

ROOT = FOLDER.parents[1]
SERVICES = ("submission", "placement", "dispatch", "reservation", "burst", "agent")
EXPORTED_BY = """
import sys
from importlib import import_module
from prometheus_client import generate_latest
import_module(f"atoll.{sys.argv[1]}.wiring")
print(generate_latest().decode())
"""


@pytest.fixture(scope="module")
def exported() -> set[str]:
    """What the services declare, each in a process of its own as it runs."""
    pages = (
        subprocess.run(
            [sys.executable, "-c", EXPORTED_BY, service],
            capture_output=True,
            text=True,
            timeout=100,
            check=True,
        ).stdout
        for service in SERVICES
    )
    return set().union(*map(exported_names, pages))


def test_every_metric_that_is_asked_for_is_exported(exported: set[str]) -> None:
    wanted = names_in_rules()
    assert len(wanted) > 20
    assert wanted <= exported, sorted(wanted - exported)


def test_recorded_series_are_recorded() -> None:
    recorded, wanted = recorded_names()
    assert wanted == recorded


def test_every_alert_has_a_severity_a_summary_and_a_runbook_that_names_it() -> None:
    alerts = [rule for rule in rules() if "alert" in rule]
    assert len(alerts) > 10
    for alert in alerts:
        assert alert["labels"]["severity"] in {"page", "ticket"}
        assert alert["annotations"]["summary"]
        page, _, section = alert["annotations"]["runbook"].partition("#")
        text = (ROOT / Path(page)).read_text()
        assert alert["alert"] in text, (alert["alert"], page)
        assert not section or f"## {alert['alert']}" in text


def test_panels_have_a_title_of_their_own() -> None:
    titles = [panel["title"] for panel in panels()]
    assert len(set(titles)) == len(titles)
