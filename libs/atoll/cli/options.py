"""Options that many commands share."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias

from cyclopts import Parameter

if TYPE_CHECKING:
    from atoll.client.config import ClientConfig
    from atoll.client.sync import Client

Format: TypeAlias = Literal["table", "wide", "json", "jsonl", "yaml", "name"]
Output = Annotated[
    Format, Parameter(name=("--output", "-o"), help="How to print.", show_default=True)
]
JobIds = Annotated[list[int], Parameter(negative=(), help="Numbers of jobs.", name="JOB")]


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class Connection:
    """Where the control plane is."""

    endpoint: Annotated[
        str | None, Parameter(help="host:port of the control plane, over ATOLL_ENDPOINT.")
    ] = None
    tenant: Annotated[str | None, Parameter(help="Tenant, over ATOLL_TENANT.")] = None

    def client(self) -> "Client":
        """A client for it; gRPC is loaded here."""
        from atoll.client.sync import Client

        return Client(config=self.config())

    def config(self) -> "ClientConfig":
        """The settings in force."""
        from atoll.client.config import load_config

        return load_config({"endpoint": self.endpoint, "tenant": self.tenant})


DEFAULT_CONNECTION = Connection()
