"""The log follows the latest set-up, also where somebody has logged before."""

import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from atoll.runtime import logs

LOG = logs.logger(__name__)


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root = logging.getLogger()
    level, handlers = root.level, root.handlers[:]
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def test_a_logger_that_was_used_follows_the_next_set_up(
    capsys: pytest.CaptureFixture[str],
) -> None:
    logs.configure("error", form="console", service="sim")
    LOG.info("unheard")
    logs.configure("info", form="json", service="placement")
    LOG.info("heard", job_id=7)
    (line,) = capsys.readouterr().err.splitlines()
    told = json.loads(line)
    assert (told["event"], told["job_id"], told["service"]) == ("heard", 7, "placement")
