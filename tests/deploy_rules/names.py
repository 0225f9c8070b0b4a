"""Names of metrics: those that rules and dashboards ask for, and those that services export."""

import json
import re
from pathlib import Path
from typing import Any, Final

import yaml

FOLDER: Final = Path(__file__).resolve().parents[2] / "deploy/observability"
RULES: Final = FOLDER / "rules.yaml"
DASHBOARD: Final = FOLDER / "dashboard.json"
METRIC: Final = re.compile(r"\b(?:atoll|rpc)_\w+")
LABEL_MATCHES: Final = re.compile(r"\{[^}]*\}|\b(?:by|on|without) \([^)]*\)")
RECORDED: Final = re.compile(r"\batoll:\w+:\w+")
PARTS: Final = {"histogram": ("_bucket", "_sum", "_count"), "counter": ("",), "gauge": ("",)}


def exported_names(page: str) -> set[str]:
    """All names of series that a page of /metrics declares, if only without samples yet."""
    kinds = re.findall(r"^# TYPE (\w+) (\w+)$", page, flags=re.MULTILINE)
    return {name + part for name, kind in kinds for part in PARTS.get(kind, ())}


def rules() -> list[dict[str, Any]]:
    """All rules."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def panels() -> list[dict[str, Any]]:
    """All panels of the dashboard that show something."""
    return [p for p in json.loads(DASHBOARD.read_text())["panels"] if p["type"] != "row"]


def expressions() -> list[str]:
    """Everything that is asked of Prometheus."""
    shown = [target["expr"] for panel in panels() for target in panel["targets"]]
    return [rule["expr"] for rule in rules()] + shown


def names_in_rules() -> set[str]:
    """Names of the services' metrics in rules and dashboard."""
    texts = (LABEL_MATCHES.sub("", text) for text in expressions())
    return {name for text in texts for name in METRIC.findall(text)}


def recorded_names() -> tuple[set[str], set[str]]:
    """Names of recorded series: those that are recorded, those that are asked for."""
    recorded = {rule["record"] for rule in rules() if "record" in rule}
    return recorded, {name for text in expressions() for name in RECORDED.findall(text)}
