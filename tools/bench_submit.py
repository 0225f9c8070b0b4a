"""Submits jobs at a rate, as a platform would: batches, several calls at a time.

A process of its own. Reads windows from stdin, one JSON object per line, and answers each with one
line on stdout: `python -m tools.bench_submit ADDRESS`.
"""

import asyncio
import contextlib
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from uuid import uuid4

import grpc
import uvloop

from atoll.api.common.v1 import common_pb2
from atoll.api.submission.v1 import submission_pb2, submission_pb2_grpc
from atoll.client.spec import parse_spec, to_proto

MOST_CALLS = 64
"""Calls under way; with more the submitter falls behind its rate."""
CALL_WITHIN_S = 30.0
DEVICES = ("H100:1", "H100:0.25")
"""What the jobs ask for, in turn."""


@dataclass(frozen=True, slots=True)
class Window:
    """What is to be submitted."""

    rate: float
    """Jobs per second."""
    seconds: float
    batch: int
    """Jobs in a call."""
    job_seconds: float
    """How long a job runs."""


@dataclass(slots=True)
class Submitted:
    """What was submitted."""

    seconds: float = 0.0
    """From the first call to the last answer."""
    ids: list[int] = field(default_factory=list)
    """Acknowledged."""
    ack_ms: list[float] = field(default_factory=list)
    """By call: from its sending to its answer."""
    errors: list[str] = field(default_factory=list)


class Submitter:
    """One process of a platform, with one channel."""

    def __init__(self, stub: "submission_pb2_grpc.SubmissionServiceAsyncStub") -> None:
        self._stub = stub
        self._free = asyncio.Semaphore(MOST_CALLS)
        self._named = 0

    async def submit(self, window: Window) -> Submitted:
        """Call at even distances, whether answers come or not."""
        done = Submitted()
        begun = time.perf_counter()
        async with asyncio.TaskGroup() as group:
            for call, jobs in enumerate(self._batches(window)):
                due = begun + call * window.batch / window.rate
                await asyncio.sleep(due - time.perf_counter())
                await self._free.acquire()
                group.create_task(self._call(jobs, done))
        done.seconds = time.perf_counter() - begun
        return done

    def _batches(self, window: Window) -> Iterator[list[common_pb2.JobSpec]]:
        templates = [template(devices, window.job_seconds) for devices in DEVICES]
        for _ in range(round(window.rate * window.seconds / window.batch)):
            jobs = []
            for place in range(window.batch):
                job = common_pb2.JobSpec()
                job.CopyFrom(templates[place % len(templates)])
                self._named += 1
                job.name = f"bench-{self._named}"
                jobs.append(job)
            yield jobs

    async def _call(self, jobs: list[common_pb2.JobSpec], done: Submitted) -> None:
        request = submission_pb2.SubmitJobsRequest(request_id=str(uuid4()), jobs=jobs)
        begun = time.perf_counter()
        try:
            reply = await self._stub.SubmitJobs(request, timeout=CALL_WITHIN_S)
        except grpc.aio.AioRpcError as error:
            done.errors.append(f"{error.code().name}: {error.details()}")
        else:
            done.ack_ms.append((time.perf_counter() - begun) * 1e3)
            done.ids.extend(reply.job_ids)
        finally:
            self._free.release()


def template(devices: str, job_seconds: float) -> common_pb2.JobSpec:
    """A job of one task."""
    return to_proto(
        parse_spec({
            "name": "bench",
            "run": "true",
            "resources": {"accelerators": devices, "cpus": 1, "memory": "1Gi"},
            "envs": {"ATOLL_SIM_SECONDS": str(job_seconds)},
        }),
        now=0.0,
    )


async def main(address: str) -> None:
    """Until stdin ends."""
    reader = asyncio.StreamReader(limit=1 << 20)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    async with grpc.aio.insecure_channel(address) as channel:
        submitter = Submitter(submission_pb2_grpc.SubmissionServiceStub(channel))
        while line := await reader.readline():
            done = await submitter.submit(Window(**json.loads(line)))
            print(json.dumps(asdict(done)), flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        uvloop.run(main(sys.argv[1]))
