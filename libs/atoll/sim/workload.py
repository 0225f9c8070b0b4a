"""The jobs of a scenario: from its generators and its traces, in the order of their submits."""

import numpy as np

from atoll.sim.generator import generate, with_run_time
from atoll.sim.scenario import Scenario
from atoll.sim.traces import read_trace
from atoll.sim.work import Work


def works_of(scenario: Scenario) -> list[Work]:
    """All jobs, by the time of their submit."""
    found: list[Work] = []
    for number, part in enumerate(scenario.synthetic):
        rng = np.random.default_rng((scenario.seed, 1, number))
        found += generate(part, rng, prefix=f"s{number}")
    for trace in scenario.traces:
        found += read_trace(trace)
    kept = [work for work in found if not scenario.length or work.at <= scenario.length]
    return [
        Work(work.at, with_run_time(work.spec, work.run_s), work.run_s)
        for work in sorted(kept, key=lambda work: work.at)
    ]
