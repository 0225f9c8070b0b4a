"""docs/lifecycle.md says what the tables say."""

from atoll.core.model.lifecycle import (
    ATTEMPT_MOVES,
    JOB_MOVES,
    TERMINAL_ATTEMPT,
    TERMINAL_JOB,
    AttemptEvent,
    AttemptState,
    JobEvent,
    JobState,
    StopCause,
    next_attempt_state,
    next_job_state,
)
from tools.render_lifecycle import ATTEMPT_EVENTS, CAUSES, JOB_EVENTS, PAGE, page


def test_the_page_is_what_the_tables_render_to() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run tools/render_lifecycle.py"


def test_every_event_and_cause_has_its_meaning() -> None:
    assert list(JOB_EVENTS) == list(JobEvent)
    assert list(ATTEMPT_EVENTS) == list(AttemptEvent)
    assert list(CAUSES) == list(StopCause)


def test_final_states_are_never_left_and_all_others_can_be() -> None:
    assert {start for start, _ in JOB_MOVES} == set(JobState) - TERMINAL_JOB
    assert {start for start, _ in ATTEMPT_MOVES} == set(AttemptState) - TERMINAL_ATTEMPT


def test_a_move_that_is_not_in_the_table_is_none() -> None:
    assert next_job_state(JobState.QUEUED, JobEvent.PLACED) is JobState.ASSIGNED
    assert next_job_state(JobState.SUCCEEDED, JobEvent.FAILED) is None
    assert next_attempt_state(AttemptState.RUNNING, AttemptEvent.REJECTED) is None
