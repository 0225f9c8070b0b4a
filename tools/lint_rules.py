"""Checks the Prometheus rules, runs their tests, and checks what the dashboard asks.

promtool comes with Debian's package `prometheus`. Where it is missing that is told, and an error
in CI only.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

FOLDER: Final = Path(__file__).resolve().parents[1] / "deploy/observability"
VARIABLES: Final = {"$__rate_interval": "5m"}
"""What Grafana puts in before it asks."""


def main() -> int:
    """Exit code: 0 when all is well."""
    promtool = shutil.which("promtool")
    if promtool is None:
        print("lint: promtool is missing, rules are not checked (Debian: prometheus)")
        return 1 if os.environ.get("CI") else 0
    with tempfile.TemporaryDirectory() as folder:
        shown = Path(folder) / "dashboard-rules.json"
        shown.write_text(json.dumps(as_rules(json.loads((FOLDER / "dashboard.json").read_text()))))
        commands = (
            ("check", "config", "prometheus.yaml"),
            ("test", "rules", "rules_test.yaml"),
            ("check", "rules", str(shown)),
        )
        return max(run(promtool, *command) for command in commands)


def as_rules(dashboard: dict[str, Any]) -> dict[str, Any]:
    """The dashboard's questions as recording rules, which promtool can check."""
    asked = [t["expr"] for panel in dashboard["panels"] for t in panel.get("targets", ())]
    rules = [
        {"record": f"dashboard:expr_{number}", "expr": _filled(expr)}
        for number, expr in enumerate(asked)
    ]
    return {"groups": [{"name": "dashboard", "rules": rules}]}


def run(promtool: str, *arguments: str) -> int:
    """Its exit code; what it says is shown when it is not 0."""
    done = subprocess.run(
        [promtool, *arguments], cwd=FOLDER, capture_output=True, text=True, check=False
    )
    if done.returncode:
        print(done.stdout + done.stderr)
    return done.returncode


def _filled(expr: str) -> str:
    for name, value in VARIABLES.items():
        expr = expr.replace(name, value)
    return expr


if __name__ == "__main__":
    sys.exit(main())
