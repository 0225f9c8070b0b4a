import re
from pathlib import Path

import pytest
from pydantic import Field

from atoll.runtime.config import ConfigError, Loaded, load, shown
from atoll.runtime.settings import Listen, StoreSettings


class Settings(StoreSettings):
    listen: Listen = Field(default="127.0.0.1:7070", description="address of the gRPC server")
    pool_size: int = Field(default=8, description="connections")


@pytest.fixture(autouse=True)
def _no_settings_around(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CONFIG", "LISTEN", "DSN", "DSN_FILE", "POOL_SIZE", "LOG_LEVEL"):
        monkeypatch.delenv(f"ATOLL_{name}", raising=False)


def read(*arguments: str) -> Loaded[Settings]:
    return load(Settings, "submission", arguments)


def test_defaults_are_named_as_such() -> None:
    rows = {field: (value, origin) for field, value, origin in shown(read())}
    assert rows["listen"] == ("127.0.0.1:7070", "default")


def test_flags_win_over_environment_over_section_over_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "atoll.yaml"
    path.write_text(
        "log_level: debug\ndrain_s: 1\nlog_format: console\nsubmission:\n"
        "  drain_s: 2\n  pool_size: 3\n  listen: 127.0.0.1:1\nplacement:\n  whatever: 1\n"
    )
    monkeypatch.setenv("ATOLL_CONFIG", str(path))
    monkeypatch.setenv("ATOLL_POOL_SIZE", "4")
    monkeypatch.setenv("ATOLL_LISTEN", "127.0.0.1:2")
    loaded = read("--listen", "127.0.0.1:3")
    settings = loaded.settings
    assert (settings.listen, settings.pool_size) == ("127.0.0.1:3", 4)
    assert (settings.drain_s, settings.log_level) == (2.0, "debug")
    assert loaded.origins == {
        "listen": "flag --listen",
        "pool_size": "environment ATOLL_POOL_SIZE",
        "drain_s": f"file {path} (submission)",
        "log_level": f"file {path}",
        "log_format": f"file {path}",
    }


def test_the_config_flag_names_another_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ATOLL_CONFIG", str(tmp_path / "not-read.yaml"))
    path = tmp_path / "other.yaml"
    path.write_text("etcd_endpoints: [a:1, b:2]\n")
    assert read(f"--config={path}").settings.etcd_endpoints == ("a:1", "b:2")
    assert read("--config", str(path)).settings.etcd_endpoints == ("a:1", "b:2")


def test_lists_are_separated_by_commas_in_flags() -> None:
    assert read("--etcd-endpoints", "a:1, b:2").settings.etcd_endpoints == ("a:1", "b:2")


def test_a_secret_comes_from_a_file_and_is_never_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "dsn"
    path.write_text("postgresql://u:hunter2@h/d\n")
    monkeypatch.setenv("ATOLL_DSN_FILE", str(path))
    loaded = read()
    assert loaded.settings.dsn.get_secret_value() == "postgresql://u:hunter2@h/d"
    assert loaded.origins["dsn"] == "environment ATOLL_DSN_FILE"
    assert "hunter2" not in repr(shown(loaded)) + repr(loaded)


def test_a_secret_given_twice_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATOLL_DSN_FILE", str(tmp_path / "dsn"))
    monkeypatch.setenv("ATOLL_DSN", "postgresql://h/d")
    with pytest.raises(ConfigError, match="keep one"):
        read()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("pool_sise: 3\n", "unknown setting 'pool_sise'"),
        ("submission:\n  pool_sise: 3\n", "did you mean 'pool_size'"),
        ("- 1\n", "expected settings"),
        ("submission: 3\n", "expected settings"),
        ("log_level: loud\n", "log_level: Input should be"),
    ],
)
def test_a_wrong_file_says_where_and_what_would_be_right(
    tmp_path: Path, text: str, told: str
) -> None:
    path = tmp_path / "atoll.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=re.escape(told)) as raised:
        read("--config", str(path))
    assert str(path) in str(raised.value)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--listen", "0.0.0.0:7070"],
        ["--listen", "10.1.2.3:7070"],
        ["--listen", "[::]:7070"],
        ["--metrics-listen", "0.0.0.0:9000"],
        ["--listen", "example.org:7070"],
    ],
)
def test_an_address_beyond_loopback_needs_tls_or_insecure(arguments: list[str]) -> None:
    with pytest.raises(ConfigError, match="is not loopback"):
        read(*arguments)
    assert read(*arguments, "--insecure").settings.insecure


@pytest.mark.parametrize("address", ["127.0.0.1:1", "127.9.9.9:1", "[::1]:1", "localhost:1"])
def test_loopback_needs_nothing(address: str) -> None:
    assert read("--listen", address).settings.listen == address


@pytest.mark.parametrize("address", ["7070", "host", "h:70000", "h:-1", ":1", "h:"])
def test_an_address_has_a_host_and_a_port(address: str) -> None:
    with pytest.raises(ConfigError, match="HOST:PORT"):
        read(f"--listen={address}")


@pytest.mark.parametrize(
    "arguments", [["--tls-cert", "c.pem"], ["--tls-key", "k.pem"], ["--tls-client-auth"]]
)
def test_half_of_the_tls_material_is_refused(arguments: list[str]) -> None:
    with pytest.raises(ConfigError, match="tls_"):
        read(*arguments)
