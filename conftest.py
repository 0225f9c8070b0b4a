"""Bounds every property test, and makes CI repeat what it found."""

import os

from hypothesis import HealthCheck, settings

settings.register_profile(
    "atoll",
    deadline=None,
    derandomize="CI" in os.environ,
    max_examples=50,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("atoll")
