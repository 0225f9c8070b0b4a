"""As much of SkyPilot's SDK (0.14) as the provider calls: requests, clusters, a history."""

import enum
import threading
from types import SimpleNamespace
from typing import Any


class ResourcesUnavailableError(Exception):
    """No cloud has it."""


class PermissionDeniedError(Exception):
    """Not for this user."""


class ApiServerConnectionError(RuntimeError):
    """Nobody answers."""


class StatusRefreshMode(enum.Enum):
    AUTO = "AUTO"


class Task:
    def __init__(self, name: str, run: str) -> None:
        self.name, self.run = name, run
        self.resources: Any = None

    def set_resources(self, resources: Any) -> None:
        self.resources = resources


class Sky:
    """The module, and the server behind it."""

    Task = Task
    StatusRefreshMode = StatusRefreshMode

    def __init__(self) -> None:
        self.fails: Exception | None = None
        """With which launches fail."""
        self.silent = False
        self.slow = False
        """Launches do not end by themselves."""
        self.tasks: list[Any] = []
        self.clusters: dict[str, SimpleNamespace] = {}
        self.history: dict[str, SimpleNamespace] = {}
        self.requests: dict[str, SimpleNamespace] = {}
        self._lock = threading.RLock()

    def Resources(self, **given: Any) -> SimpleNamespace:  # noqa: N802 - the SDK's name
        cloud, region = given["infra"].split("/")
        return SimpleNamespace(cloud=cloud.upper(), region=region, zone=None, **given)

    def launch(self, task: Any, cluster_name: str, *, retry_until_up: bool) -> str:
        assert not retry_until_up
        with self._lock:
            request = self._request("sky.launch", cluster_name)
            self.tasks.append(task)
            request.task = task
            if not self.slow:
                self.finish(request)
            return str(request.request_id)

    def finish(self, request: SimpleNamespace) -> None:
        request.status = "FAILED" if self.fails else "SUCCEEDED"
        request.error = self.fails
        if not self.fails and request.cluster_name not in self.clusters:
            handle = SimpleNamespace(launched_resources=request.task.resources)
            self.clusters[request.cluster_name] = SimpleNamespace(
                name=request.cluster_name, status=SimpleNamespace(value="UP"), launched_at=1,
                handle=handle,
            )  # fmt: skip

    def down(self, cluster_name: str) -> str:
        with self._lock:
            request = self._request("sky.down", cluster_name)
            for other in self.requests.values():
                if other.cluster_name == cluster_name and other.status == "RUNNING":
                    other.status = "CANCELLED"
            request.status = "SUCCEEDED"
            if self.clusters.pop(cluster_name, None):
                self.history[cluster_name] = SimpleNamespace(name=cluster_name, status=None)
            return str(request.request_id)

    def status(self, names: list[str] | None, *, refresh: object) -> str:
        assert refresh is StatusRefreshMode.AUTO
        found = [c for c in self.clusters.values() if names is None or c.name in names]
        return self._answered(found)

    def cost_report(self) -> str:
        return self._answered([{"name": c.name, "status": None} for c in self.history.values()])

    def api_status(
        self, ids: list[str] | None = None, *, all_status: bool = False, limit: int = 0
    ) -> list[SimpleNamespace]:
        with self._lock:
            self._answer()
            found = [r for r in self.requests.values() if ids is None or r.request_id in ids]
            return [r for r in found if all_status or r.status == "RUNNING"][: limit or None]

    def get(self, request_id: str) -> Any:
        with self._lock:
            self._answer()
            request = self.requests[request_id]
            if request.error:
                raise request.error
            return request.value

    def _answered(self, value: object) -> str:
        with self._lock:
            request = self._request("sky.status", None)
            request.status, request.value = "SUCCEEDED", value
            return str(request.request_id)

    def _request(self, name: str, cluster: str | None) -> SimpleNamespace:
        self._answer()
        made = SimpleNamespace(
            request_id=f"r{len(self.requests)}", name=name, cluster_name=cluster,
            status="RUNNING", error=None, value=None,
        )  # fmt: skip
        self.requests[made.request_id] = made
        return made

    def _answer(self) -> None:
        if self.silent:
            raise ApiServerConnectionError("nobody listens")
