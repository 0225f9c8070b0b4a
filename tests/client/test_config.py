"""Where settings come from, and where a control plane of this machine is found."""

import stat
from pathlib import Path

import pytest

from atoll.client.channel import credentials, is_local, metadata
from atoll.client.config import ClientConfig, load_config
from atoll.client.endpoints import Endpoints, endpoints_file, read_endpoints, write_endpoints
from atoll.core.model.errors import ErrorCode, InvalidInput

HERE = Endpoints("default", "127.0.0.1:41001", ("127.0.0.1:41002",), pid=7)


def write_config(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_text(text)


def test_without_anything_the_usual_ports_of_this_machine_are_taken() -> None:
    config = load_config()
    assert (config.endpoint, config.placement) == ("127.0.0.1:7070", ("127.0.0.1:7072",))
    assert config.origins["endpoint"] == "default"


def test_what_runs_here_is_found() -> None:
    write_endpoints(endpoints_file(), HERE)
    config = load_config()
    assert (config.endpoint, config.placement) == ("127.0.0.1:41001", ("127.0.0.1:41002",))
    assert config.origins["endpoint"] == f"file {endpoints_file()}"


def test_another_control_plane_of_this_machine_is_found_by_its_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    write_endpoints(endpoints_file("second"), Endpoints("second", "127.0.0.1:5"))
    monkeypatch.setenv("ATOLL_NAME", "second")
    assert load_config().endpoint == "127.0.0.1:5"


def test_flags_come_over_environment_over_file_over_what_runs_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_endpoints(endpoints_file(), HERE)
    write_config(tmp_path, "client: {endpoint: 'file:1', tenant: of-file, timeout_s: 5}\n")
    assert load_config().endpoint == "file:1"
    monkeypatch.setenv("ATOLL_ENDPOINT", "env:1")
    assert load_config().endpoint == "env:1"
    config = load_config({"endpoint": "flag:1", "tenant": None})
    assert (config.endpoint, config.tenant, config.timeout_s) == ("flag:1", "of-file", 5.0)
    assert config.origins["endpoint"] == "flag --endpoint"
    assert config.origins["tenant"] == f"file {tmp_path / 'config.yaml'}"


def test_addresses_of_two_control_planes_are_never_mixed(monkeypatch: pytest.MonkeyPatch) -> None:
    write_endpoints(endpoints_file(), HERE)
    monkeypatch.setenv("ATOLL_ENDPOINT", "elsewhere:7070")
    assert load_config().placement == ()


def test_several_placement_replicas_are_listed_with_commas(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ATOLL_PLACEMENT", "a:1, b:2,")
    assert load_config().placement == ("a:1", "b:2")


@pytest.mark.parametrize(
    ("text", "field", "told"),
    [
        ("client: {endpont: x}", "client.endpont", "did you mean `endpoint`?"),
        ("client: [1]", "client", "mapping"),
        ("client: {tls: maybe}", "tls", "use one of auto, on, off"),
        ("client: {timeout_s: -1}", "timeout_s", "seconds above 0"),
        ("client: {timeout_s: .nan}", "timeout_s", "seconds above 0"),
        ("client: [", "config", "expected"),
    ],
)
def test_a_wrong_file_is_told(tmp_path: Path, text: str, field: str, told: str) -> None:
    write_config(tmp_path, text)
    with pytest.raises(InvalidInput) as caught:
        load_config()
    (violation,) = caught.value.violations
    assert violation.field == field
    assert told in violation.message


def test_sections_of_services_in_the_same_file_are_left_alone(tmp_path: Path) -> None:
    write_config(tmp_path, "dsn: x\nplacement: {listen: y}\nclient:\n")
    assert load_config().endpoint == "127.0.0.1:7070"


def test_an_unknown_key_has_the_code_of_one(tmp_path: Path) -> None:
    write_config(tmp_path, "client: {colour: blue}")
    with pytest.raises(InvalidInput) as caught:
        load_config()
    assert caught.value.code is ErrorCode.UNKNOWN_FIELD


def test_endpoints_are_read_as_written_and_only_their_owner_reads_them() -> None:
    path = endpoints_file("x")
    write_endpoints(path, HERE)
    assert read_endpoints(path) == HERE
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [found.name for found in path.parent.iterdir()] == ["endpoints.json"]


def test_keys_of_a_newer_version_are_left_out() -> None:
    path = endpoints_file()
    path.parent.mkdir(parents=True)
    path.write_text('{"name": "default", "submission": "a:1", "colour": "blue"}')
    assert read_endpoints(path) == Endpoints("default", "a:1")


@pytest.mark.parametrize("text", ["", "[]", "{", '{"name": "x"}'])
def test_a_broken_file_of_endpoints_is_told(text: str) -> None:
    path = endpoints_file()
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(InvalidInput, match="not a file of endpoints"):
        load_config()


@pytest.mark.parametrize(
    ("address", "local"),
    [
        ("127.0.0.1:1", True),
        ("127.9.9.9:1", True),
        ("localhost:1", True),
        ("[::1]:1", True),
        ("unix:/run/atoll.sock", True),
        ("10.0.0.1:1", False),
        ("atoll.example.org:443", False),
        ("localhost.example.org:1", False),
        ("nonsense", False),
    ],
)
def test_tls_is_on_by_itself_for_all_but_this_machine(address: str, local: bool) -> None:
    assert is_local(address) is local
    assert (credentials(ClientConfig(), address) is None) is local
    assert credentials(ClientConfig(tls="off"), address) is None
    assert credentials(ClientConfig(tls="on"), address) is not None


def test_a_missing_certificate_is_told_by_its_file(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"ca\.pem"):
        credentials(ClientConfig(tls="on", tls_ca=str(tmp_path / "ca.pem")), "a:1")


def test_names_that_no_header_can_carry_are_still_sent() -> None:
    assert metadata(ClientConfig(principal="zoë"))[0] == ("x-atoll-principal", "zo?")
