"""Settings that all services have in common: validated, frozen, and safe when left alone.

Every service listens on loopback. Any other address needs TLS material, or `insecure` said aloud,
which is then logged at every start.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, model_validator
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from atoll.runtime.address import Address, checked_address


def _split(value: object) -> object:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


Listen = Annotated[str, AfterValidator(checked_address)]
"""`HOST:PORT`; port 0 takes a free one."""

Names = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split)]
"""Separated by commas in flags and environment, a list in a file."""


class ServiceSettings(BaseSettings):
    """What every service can be told. `runtime.config.load` reads it from all sources.

    Fields of type SecretStr are never shown, and are also read from the file that
    `ATOLL_<NAME>_FILE` names.
    """

    model_config = SettingsConfigDict(env_prefix="ATOLL_", frozen=True, extra="forbid")

    listen: Listen = Field(default="127.0.0.1:0", description="address of the gRPC server")
    advertise: str = Field(
        default="",
        description="address under which others reach it; empty: the address it listens on",
    )
    metrics_listen: Listen = Field(
        default="127.0.0.1:0", description="address of /metrics, /healthz and /readyz over HTTP"
    )
    tls_cert: Path | None = Field(default=None, description="PEM certificate chain of this service")
    tls_key: Path | None = Field(default=None, description="PEM private key of this service")
    tls_ca: Path | None = Field(
        default=None, description="PEM roots that peers are checked against"
    )
    tls_client_auth: bool = Field(
        default=False, description="refuse callers without a certificate that tls_ca signed"
    )
    insecure: bool = Field(
        default=False,
        description="serve addresses beyond loopback without TLS: anyone can read and call",
    )
    reflection: bool = Field(default=False, description="let any caller list services and messages")
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="least severe messages to log"
    )
    log_format: Literal["json", "console"] = Field(
        default="json", description="form of the log on stderr"
    )
    otlp_endpoint: str = Field(
        default="", description="OTLP collector (gRPC) that spans go to; empty: none"
    )
    trace_file: Path | None = Field(
        default=None, description="file that spans go to, one JSON per line"
    )
    trace_ratio: float = Field(
        default=1.0, ge=0, le=1, description="share of new traces that are kept"
    )
    drain_s: float = Field(
        default=10.0, ge=0, le=3600, description="seconds for calls to end at a stop"
    )

    @classmethod
    def settings_customise_sources(  # noqa: PLR0917 - the signature is pydantic's
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Only what `config.load` gives: it asks the sources itself, and remembers which spoke."""
        return (init_settings,)

    @property
    def tls(self) -> bool:
        """True when this service has a certificate to show."""
        return self.tls_cert is not None

    @model_validator(mode="after")
    def _tls_material_is_whole(self) -> Self:
        if (self.tls_cert is None) != (self.tls_key is None):
            raise ValueError("tls_cert and tls_key go together")
        if self.tls_client_auth and (self.tls_ca is None or not self.tls):
            raise ValueError("tls_client_auth needs tls_cert, tls_key and tls_ca")
        return self

    @model_validator(mode="after")
    def _safe_by_default(self) -> Self:
        if exposed := [] if self.insecure else list(exposed_addresses(self)):
            raise ValueError(
                f"{', '.join(exposed)} is not loopback: give tls_cert and tls_key, or set insecure"
            )
        return self


class StoreSettings(ServiceSettings):
    """What services that hold state in PostgreSQL, Redis and etcd can be told."""

    dsn: SecretStr = Field(
        default=SecretStr(""), description="PostgreSQL, as postgresql://user@host/db"
    )
    redis_url: SecretStr = Field(
        default=SecretStr(""),
        description="Redis, as redis://host:port; empty: none, loops only poll",
    )
    etcd_endpoints: Names = Field(
        default=(), description="etcd members; empty: nothing is registered"
    )
    etcd_prefix: str = Field(
        default="/atoll",
        pattern="^/[^/]",
        description="where this installation's keys begin in etcd",
    )
    etcd_ca: Path | None = Field(default=None, description="PEM roots that etcd is checked against")
    etcd_cert: Path | None = Field(default=None, description="PEM certificate shown to etcd")
    etcd_key: Path | None = Field(default=None, description="PEM private key for etcd_cert")


class LoopSettings(StoreSettings):
    """What services can be told of which one replica leads a loop, and all answer."""

    pool_size: int = Field(default=8, ge=2, le=200, description="connections to PostgreSQL")
    election_ttl_s: float = Field(
        default=5.0, ge=2, le=60, description="lease of the loop's leader, seconds"
    )
    registry_ttl_s: float = Field(
        default=10.0,
        ge=2,
        le=600,
        description="time after which a dead replica leaves the registry",
    )


def exposed_addresses(settings: ServiceSettings) -> Iterator[str]:
    """`field=address` of what others can reach without TLS."""
    if not settings.tls:
        for field in ("listen", "metrics_listen"):
            text: str = getattr(settings, field)
            if not Address.parse(text).loopback:
                yield f"{field}={text}"
