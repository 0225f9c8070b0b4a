"""What is removed, one at a time, and which tests have to notice.

Each guards an invariant: without it something runs twice, is lost, or is half there.
"""

from dataclasses import dataclass
from typing import Final

STORE: Final = "libs/atoll/adapters/postgres"
OF_STORE: Final = "tests/adapters/test_store_"
OF_DISPATCH: Final = "tests/services/dispatch"
OF_SUBMIT: Final = "tests/services/submission/test_submit.py"
OF_AGENT: Final = "tests/services/agent"
CONTRACT: Final = "tests/contract/test_backends.py"


@dataclass(frozen=True, slots=True)
class Edit:
    """Replaces a text that stands in a file exactly once."""

    path: str
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Mutant:
    """The product without one of its guards."""

    guard: str
    without: str
    edits: tuple[Edit, ...]
    tests: tuple[str, ...]
    """The smallest that have to fail."""


FENCE: Final = (
    Mutant(
        "fence",
        "the rows' epoch and count are not compared",
        (
            Edit(
                f"{STORE}/placement_tx.py",
                "WHERE id = $1 AND epoch_generation = $2 AND epoch_revision = $3"
                " AND commit_seq = $4\n    AND booking_rev = $5\n",
                "WHERE id = $1 AND $2::bigint + $3::bigint + $4::bigint + $5::bigint >= 0\n",
            ),
        ),
        (f"{OF_STORE}placement.py::test_a_newer_epoch_deposes_an_older_leader",),
    ),
    Mutant(
        "fence",
        "the epoch is compared, the count of commits is not",
        (
            Edit(
                f"{STORE}/placement_tx.py",
                " AND commit_seq = $4\n",
                " AND commit_seq >= $4 - $4\n",
            ),
        ),
        (f"{OF_STORE}placement.py::test_every_commit_needs_the_fence_of_the_one_before",),
    ),
    Mutant(
        "fence",
        "a leader commits placements without asking",
        (
            Edit(
                "services/atoll/placement/usecases/commit_plan.py",
                "        after = await tx.require(fence)\n",
                "        after = fence\n",
            ),
        ),
        ("tests/services/placement/test_leader.py::test_a_deposed_leader_commits_nothing",),
    ),
)

INBOX: Final = (
    Mutant(
        "inbox",
        "a report below report_seq counts as new",
        (
            Edit(
                "services/atoll/dispatch/usecases/fold.py",
                "        if report.number < expected:\n            repeated.append(report)\n",
                "        if report.number < expected:\n            fresh.append(report)\n",
            ),
        ),
        (
            f"{OF_DISPATCH}/test_fold.py",
            f"{OF_DISPATCH}/test_reports.py::test_repeated_reports_change_nothing",
        ),
    ),
    Mutant(
        "inbox",
        "report_seq is not written with what it stands for",
        (
            Edit(
                "services/atoll/dispatch/usecases/reports.py",
                "            await tx.set_report_seqs([(c, a.report_seq)"
                " for c, a in sorted(answers.items())])\n",
                "",
            ),
        ),
        (f"{OF_DISPATCH}/test_reports.py::test_repeated_reports_change_nothing",),
    ),
    Mutant(
        "inbox",
        "a gap in the reports is stepped over",
        (
            Edit(
                "services/atoll/dispatch/usecases/fold.py",
                "        else:\n            break\n    return Split",
                "        else:\n            fresh.append(report)\n"
                "            expected = report.number + 1\n    return Split",
            ),
        ),
        (
            f"{OF_DISPATCH}/test_fold.py",
            f"{OF_DISPATCH}/test_reports.py::test_a_gap_is_not_stepped_over",
        ),
    ),
)

REQUEST_KEY: Final = (
    Mutant(
        "unique request key",
        "the table takes a key twice",
        (
            Edit(
                "migrations/versions/0001_initial.py",
                "        created_at double precision NOT NULL DEFAULT extract(epoch FROM now()),\n"
                "        PRIMARY KEY (tenant, key)\n",
                "        created_at double precision NOT NULL DEFAULT extract(epoch FROM now())\n",
            ),
            Edit(
                f"{STORE}/submission_tx.py",
                "ON CONFLICT (tenant, key) DO NOTHING\nRETURNING tenant, key\n",
                "RETURNING tenant, key\n",
            ),
        ),
        (f"{OF_STORE}submission.py::test_ten_repeated_submits_in_parallel_write_one_job",),
    ),
    Mutant(
        "unique request key",
        "what an earlier call of the key wrote is not looked at",
        (
            Edit(
                "services/atoll/submission/usecases/write_jobs.py",
                "    standing = await tx.add_requests("
                "[replace(call.request, jobs=jobs) for call, jobs in numbered])\n",
                "    await tx.add_requests("
                "[replace(call.request, jobs=jobs) for call, jobs in numbered])\n"
                "    standing = [None] * len(numbered)\n",
            ),
        ),
        (f"{OF_SUBMIT}::test_a_repeated_call_finds_its_jobs",),
    ),
    Mutant(
        "unique request key",
        "the same key with another body is taken for a repetition",
        (
            Edit(
                "services/atoll/submission/usecases/write_jobs.py",
                "    if standing.body_hash == call.request.body_hash:\n",
                "    if standing.body_hash:\n",
            ),
        ),
        (f"{OF_SUBMIT}::test_the_same_key_with_another_body_is_refused",),
    ),
)

GANG: Final = (
    Mutant(
        "gang unwind",
        "a plan keeps the part of a gang that found room",
        (
            Edit(
                "libs/atoll/core/engine/gangs.py",
                "            self.statement.rollback(mark)\n"
                "            if outcome is Outcome.AT_LIMIT:\n"
                "                return outcome\n        return Outcome.NO_PLACE\n",
                "            if outcome is Outcome.AT_LIMIT:\n"
                "                return outcome\n        return Outcome.NO_PLACE\n",
            ),
        ),
        ("tests/golden/test_cycle.py", "tests/core/test_plan_properties.py"),
    ),
    Mutant(
        "gang unwind",
        "a cluster that binds in part leaves that part running",
        (
            Edit(
                "services/atoll/agent/backends/simulated.py",
                "        finally:\n            await self._engine.unwind(run)\n",
                "        finally:\n            pass\n",
            ),
        ),
        (
            f"{OF_AGENT}/test_simulated.py::test_a_gang_that_binds_in_part_is_unwound_before_it_is_rejected",
        ),
    ),
    Mutant(
        "gang unwind",
        "the next agent leaves it running too",
        (
            Edit(
                "services/atoll/agent/simcluster/engine.py",
                "for run in [*self.live.values()] if run.partial",
                "for run in [*self.live.values()] if run.partial and run.attempt < 0",
            ),
        ),
        (
            f"{OF_AGENT}/test_restarts.py::test_a_gang_that_was_bound_in_part_is_unwound_by_the_next_agent",
        ),
    ),
    Mutant(
        "gang unwind",
        "on a machine, the other ranks go on when one fails",
        (
            Edit(
                "services/atoll/agent/localrun/wrapper.py",
                '        if any(self._codes.values()):\n            self._stop("FAILED")\n',
                "",
            ),
        ),
        (f"{OF_AGENT}/test_local.py::test_a_member_that_fails_ends_the_others",),
    ),
)

STOP_AFTER: Final = (
    Mutant(
        "stop_after",
        "a run on a machine outlives its agent's lease",
        (
            Edit(
                "services/atoll/agent/localrun/wrapper.py",
                "        if not self._guard_tripped and self._lease.over(now):\n",
                "        if not self._guard_tripped and now < 0:\n",
            ),
        ),
        (f"{CONTRACT}::test_the_guard_stops_guarded_runs_when_the_lease_is_over",),
    ),
    Mutant(
        "stop_after",
        "a run on a machine begins without a lease",
        (
            Edit(
                "services/atoll/agent/localrun/wrapper.py",
                "    if lease.over(boottime()):\n",
                "    if boottime() < 0:\n",
            ),
        ),
        (f"{CONTRACT}::test_without_a_lease_a_guarded_run_does_not_begin",),
    ),
    Mutant(
        "stop_after",
        "a run in a simulated cluster outlives its agent's lease",
        (
            Edit(
                "services/atoll/agent/simcluster/engine.py",
                "        if not self._guarded or self._lease_until > now:\n",
                "        if not self._guarded or now >= 0:\n",
            ),
        ),
        (f"{CONTRACT}::test_the_guard_stops_guarded_runs_when_the_lease_is_over",),
    ),
    Mutant(
        "stop_after",
        "the agent promises a guard whose times do not fit",
        (
            Edit(
                "services/atoll/agent/session.py",
                "        in_time = limits.in_time(lost_after_s)\n",
                "        in_time = True\n",
            ),
        ),
        (f"{OF_AGENT}/test_session_ends.py::test_a_guard_that_is_too_slow_is_not_offered",),
    ),
    Mutant(
        "stop_after",
        "the lease counts from when an answer came, not from when it was asked",
        (
            Edit(
                "services/atoll/agent/session.py",
                "renew_lease(sent.at + parts.limits.stop_after_s)",
                "renew_lease(parts.clock.monotonic() + parts.limits.stop_after_s)",
            ),
        ),
        (f"{OF_AGENT}/test_session_ends.py::test_the_guards_lease_counts_from_the_question",),
    ),
)

MUTANTS: Final = (*FENCE, *INBOX, *REQUEST_KEY, *GANG, *STOP_AFTER)
