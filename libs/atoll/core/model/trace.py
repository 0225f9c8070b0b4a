"""The trace of one job.

Jobs of one call share what is stored of it, its traceparent; each job's own is
made from that and its number, so that nothing is kept per job.
"""

import hashlib
from typing import Final

from atoll.core.model.ids import JobId

PARTS: Final = 4
"""Of a traceparent: version, trace, span, flags."""
TRACE_DIGITS: Final = 32
SPAN_DIGITS: Final = 16


def job_trace(submit: str, job: JobId) -> str:
    """W3C traceparent of a job's own trace, kept if the submit's is; empty when it had none.

    The span in it is the first of the job's trace, which links to the submit's.
    """
    parts = submit.split("-")
    if len(parts) != PARTS:
        return ""
    size = (TRACE_DIGITS + SPAN_DIGITS) // 2
    digits = hashlib.blake2b(f"{submit}/{job}".encode(), digest_size=size).hexdigest()
    return f"00-{digits[:TRACE_DIGITS]}-{digits[TRACE_DIGITS:]}-{parts[3]}"
