"""When there would be room for one job in some clusters, if nobody were before it."""

from collections.abc import Container
from dataclasses import replace

import numpy as np

from atoll.core.engine.choice.scene import Scene
from atoll.core.engine.masks import Masks
from atoll.core.engine.timeline.expected_runs import expected_runs
from atoll.core.engine.timeline.joining import joined
from atoll.core.engine.timeline.routes import Routes
from atoll.core.model.ids import ClusterName
from atoll.core.model.plan import PendingJob
from atoll.core.model.reason import ReasonCode
from atoll.core.state.rental_view import NO_RENTALS
from atoll.core.state.snapshot import ClusterView
from atoll.core.state.survey import Survey

_NOBODY = np.zeros(0, np.int64)


def rooms(
    scene: Scene, pending: PendingJob, *, clusters: Container[ClusterName]
) -> dict[ClusterName, float]:
    """Unix seconds by cluster, as if these clusters took work and no others did.

    Those in which there will never be room are left out.
    """
    look = scene.look
    views = tuple(_only(view, clusters) for view in look.clusters)
    alone = replace(look, clusters=views, avoidances=(), rentals=NO_RENTALS)
    survey = joined(Survey(alone, _NOBODY, _NOBODY, scene.times), pending)
    runs = expected_runs(survey, now=look.now)
    routes = Routes(survey.snapshot, runs, Masks(survey.snapshot, scene.policies, look.now))
    found: dict[ClusterName, float] = {}
    for way in routes.of(survey.snapshot.queue.classes[0]):
        name, start = look.clusters[way.cluster].name, max(way.first, way.opens)
        if np.isfinite(start):
            found[name] = min(start, found.get(name, np.inf))
    return found


def _only(view: ClusterView, clusters: Container[ClusterName]) -> ClusterView:
    return replace(view, closed=None if view.name in clusters else ReasonCode.NO_CLUSTER)
