from pathlib import Path

import yaml

from atoll.agent.simcluster.description import read_cluster
from atoll.embedded.clusters import read_clusters
from tools.bench_stack import described
from tools.bench_submit import DEVICES, template


def test_the_cluster_has_so_many_nodes_of_eight_devices(tmp_path: Path) -> None:
    file = tmp_path / "clusters.yaml"
    file.write_text(yaml.safe_dump(described(70)))
    (cluster,) = read_clusters(file).clusters
    content = tmp_path / "cluster.yaml"
    content.write_text(yaml.safe_dump(cluster.cluster))
    nodes = read_cluster(content, cluster.name).nodes
    assert len(nodes) == 70
    assert {len(node.devices) for node in nodes} == {8}
    assert len({node.domains for node in nodes}) == 3


def test_jobs_ask_for_what_the_cluster_has() -> None:
    asked = [template(devices, 1.5).groups[0].shapes[0].device for devices in DEVICES]
    assert [(device.kind, device.count, device.blocks) for device in asked] == [
        ("H100", 1, 100),
        ("H100", 1, 25),
    ]
