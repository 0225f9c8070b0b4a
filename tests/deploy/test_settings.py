"""What deployments tell services is what services can be told."""

import os
from pathlib import Path

import pytest
from pydantic import SecretStr

from atoll.client.config import SETTINGS as CLIENT_SETTINGS
from atoll.runtime import config
from tests.deploy.manifests import SETTINGS, Run, compose_services, runs

RUNS = runs()


def known(role: str) -> set[str]:
    """Every variable that the settings of a role have."""
    fields = SETTINGS[role].model_fields
    names = {f"ATOLL_{name.upper()}" for name in fields}
    secret = {name for name, info in fields.items() if info.annotation is SecretStr}
    return names | {f"ATOLL_{name.upper()}_FILE" for name in secret} | {"ATOLL_CONFIG"}


def test_every_role_is_deployed_by_compose_and_by_kubernetes() -> None:
    for place in ("compose", "k8s"):
        roles = {run.role for run in RUNS if run.where.startswith(place)}
        assert roles >= {
            "submission",
            "placement",
            "dispatch",
            "reservation",
            "burst",
            "agent",
            "migrate",
        }


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.where)
def test_every_variable_is_a_setting_of_its_service(run: Run) -> None:
    # A pod's shared settings may name what one of its containers does not use.
    shared = known("submission") if run.where.startswith("k8s") else set()
    assert set(run.atoll) - known(run.role) - shared == set()


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.where)
def test_the_service_accepts_what_it_is_told(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("ATOLL_")]:
        monkeypatch.delenv(name)
    for name, text in run.atoll.items():
        if name.endswith("_FILE") and name != "ATOLL_CLUSTER_FILE":
            (tmp_path / name).write_text(f"secret of {text}")
            text = str(tmp_path / name)
        monkeypatch.setenv(name, text)
    settings = config.load(SETTINGS[run.role], run.role).settings
    assert not settings.insecure
    if run.role in {"submission", "placement", "dispatch", "reservation", "burst"}:
        assert settings.tls
        assert settings.advertise.rpartition(":")[2] == settings.listen.rpartition(":")[2]


def test_the_client_of_compose_is_told_what_it_knows() -> None:
    told = compose_services()["client"]["environment"]
    assert set(told) <= {f"ATOLL_{name.upper()}" for name in CLIENT_SETTINGS}
