"""Logs stay small while their writers write on."""

from pathlib import Path

from atoll.embedded.housekeeping import cut


def test_a_log_is_cut_in_place_and_its_writer_goes_on(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("ab", buffering=0) as writer:
        writer.write(b"old\n" * 100)
        cut(log, most=100)
        writer.write(b"new\n")
        assert log.read_bytes() == b"new\n"
        assert (tmp_path / "log.old").read_bytes() == b"old\n" * 100
        cut(log, most=100)
        assert log.read_bytes() == b"new\n"


def test_there_is_never_more_than_one_old_log(tmp_path: Path) -> None:
    log = tmp_path / "log"
    for round_ in range(5):
        log.write_text(f"{round_}" * 200)
        cut(log, most=100)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "log.old"]
    assert (tmp_path / "log.old").read_text() == "4" * 200


def test_a_log_that_is_not_there_is_no_error(tmp_path: Path) -> None:
    cut(tmp_path / "none")
    assert not list(tmp_path.iterdir())
