"""Rules for jobs with deadlines by name. A new one is one file and one line here."""

from typing import Final

from atoll.core.engine.burst.expected_cost import ExpectedCost
from atoll.core.engine.burst.greedy import Greedy
from atoll.core.engine.burst.spot import SpotRule
from atoll.core.engine.burst.uniform_progress import UniformProgress

RULES: Final[dict[str, SpotRule]] = {
    "atoll": ExpectedCost(),
    "uniform_progress": UniformProgress(),
    "greedy": Greedy(),
}
