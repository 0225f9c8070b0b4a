"""Writes a small trace in the format of the Alibaba GPU lists of 2023: nodes, pods, clusters file.

The same seed gives the same bytes. `atoll up --clusters DIR/clusters.yaml`, then
`atoll replay openb --nodes DIR/nodes.csv --pods DIR/pods.csv`.
"""

import argparse
import csv
import random
from collections.abc import Iterator, Sequence
from pathlib import Path

KINDS = ("P100", "T4", "V100M32", "G2")
NODE_COLUMNS = ("sn", "cpu_milli", "memory_mib", "gpu", "model")
POD_COLUMNS = (
    "name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli", "gpu_spec", "qos", "pod_phase",
    "creation_time", "deletion_time", "scheduled_time",
)  # fmt: skip
CLUSTERS = "clusters: [{name: openb, backend: simulated, cluster: nodes.csv}]\n"


def main() -> None:
    """Writes the three files into a folder."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--nodes", type=int, default=16, help="machines")
    parser.add_argument("--pods", type=int, default=200, help="jobs")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    write(given.folder, nodes=given.nodes, pods=given.pods, seed=given.seed)


def write(folder: Path, *, nodes: int, pods: int, seed: int) -> None:
    """Writes nodes.csv, pods.csv and clusters.yaml."""
    rng = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "nodes.csv", NODE_COLUMNS, node_rows(nodes, rng))
    _write(folder / "pods.csv", POD_COLUMNS, pod_rows(pods, rng))
    (folder / "clusters.yaml").write_text(CLUSTERS)


def node_rows(count: int, rng: random.Random) -> Iterator[Sequence[object]]:
    """Machines with 2, 4 or 8 devices of one kind, and now and then none."""
    for n in range(count):
        gpus = rng.choice((2, 4, 8, 8, 0)) if n else 8
        yield (
            f"node-{n:04}",
            12_000 * max(gpus, 4),
            98_304 * max(gpus, 2),
            gpus,
            (rng.choice(KINDS) if gpus else ""),
        )


def pod_rows(count: int, rng: random.Random) -> Iterator[Sequence[object]]:
    """Mostly single devices and shares of one, a few large ones, most of them short."""
    clock = 0
    for n in range(count):
        clock += int(rng.expovariate(1 / 60))
        ran = max(1, int(rng.lognormvariate(6, 1)))
        gpus, milli = rng.choice((
            (1, 1000),
            (1, 1000),
            (1, 0),
            (1, 0),
            (2, 1000),
            (8, 1000),
            (0, 0),
        ))
        milli = milli or (rng.randrange(5, 100) * 10 if gpus else 0)
        begun = clock + rng.randrange(3)
        yield (
            f"pod-{n:04}", 1_000 * rng.randrange(1, 9), 1_024 * rng.randrange(1, 33), gpus, milli,
            "", "LS", "Succeeded", clock, begun + ran, begun,
        )  # fmt: skip


def _write(path: Path, columns: Sequence[str], rows: Iterator[Sequence[object]]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows(rows)


if __name__ == "__main__":
    main()
