"""What simulated clusters are made of."""

import gzip
import json
import os
from pathlib import Path

import pytest

from atoll.agent.described import BadDescription
from atoll.agent.simcluster.description import read_cluster

DOCUMENT = """
levels: [block, rack]
labels: {region: eu}
nodes:
  - name: h100
    count: 5
    cpus: 64
    memory: 512Gi
    devices: {kind: H100, count: 8, memory: 80Gi}
    labels: {zone: a}
    topology: {block: 4, rack: 2}
  - name: mig
    cpus: 1.5
    memory: 4Gi
    devices:
      - {kind: A100, memory: 40Gi, mig: true}
      - {kind: H100, memory: 80Gi, mig: [{profile: 1g.10gb, start: 2, uuid: MIG-x}]}
      - {kind: H100, memory: 80Gi, mig: dynamic}
"""


def test_groups_become_nodes_with_devices_labels_and_domains(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(DOCUMENT)
    described = read_cluster(path, "c1")
    assert described.levels == ("block", "rack")
    names = [node.name for node in described.nodes]
    assert names == ["h100-0000", "h100-0001", "h100-0002", "h100-0003", "h100-0004", "mig"]
    last, mig = described.nodes[4:]
    assert (last.cpu_milli, last.memory_bytes) == (64_000, 512 << 30)
    assert [device.index for device in last.devices] == list(range(8))
    assert last.devices[7].memory_bytes == 80 << 30
    assert last.labels == (("cluster", "c1"), ("region", "eu"), ("zone", "a"))
    assert last.domains == (("block", "h100-block-0001"), ("rack", "h100-rack-0002"))
    assert (mig.cpu_milli, mig.domains) == (1_500, ())
    assert [device.mig for device in mig.devices] == [True, True, False]
    assert [device.mig_dynamic for device in mig.devices] == [False, False, True]
    assert mig.devices[1].mig_instances == (("1g.10gb", 2, "MIG-x"),)


def test_json_is_as_good_as_yaml(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"nodes": [{"name": "n", "count": 2}]}))
    assert [node.name for node in read_cluster(path, "c1").nodes] == ["n-0000", "n-0001"]


@pytest.mark.parametrize(
    ("document", "complaint"),
    [
        ("nodes: []", "0 nodes"),
        ("nodes: [{nmae: x}]", "'nmae' is unknown"),
        ("nodes: [{name: x, memory: lots}]", "'lots' is no amount"),
        ("nodes: [{name: x}, {name: x}]", "same name"),
        ("levels: [rack]\nnodes: [{name: x, topology: {row: 2}}]", "'row'"),
        ("nodes: [{name: x, count: many}]", "many"),
        ("nodes: [", "cluster.yaml"),
        ("[]", "expected `key: value`"),
        ("nodes: [{name: x, devices: [{kind: H100, colour: red}]}]", "'colour' is unknown"),
    ],
)
def test_what_is_wrong_is_said(tmp_path: Path, document: str, complaint: str) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(document)
    with pytest.raises(BadDescription, match=complaint):
        read_cluster(path, "c1")


def test_an_absent_file_is_said(tmp_path: Path) -> None:
    with pytest.raises(BadDescription, match="No such file"):
        read_cluster(tmp_path / "absent.yaml", "c1")


def test_node_lists_of_the_openb_traces_are_read(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv.gz"
    text = "sn,cpu_milli,memory_mib,gpu,model\na,32000,262144,0,\nb,64000,1024,2,V100M32\n"
    path.write_bytes(gzip.compress(text.encode()))
    plain, gpus = read_cluster(path, "c1").nodes
    assert (plain.name, plain.cpu_milli, plain.memory_bytes) == ("a", 32_000, 256 << 30)
    assert plain.devices == ()
    assert [(device.index, device.kind) for device in gpus.devices] == [
        (0, "V100M32"),
        (1, "V100M32"),
    ]
    assert gpus.devices[0].memory_bytes == 32 << 30


@pytest.mark.parametrize("name", ["openb_node_list_gpu_node.csv.gz"])
def test_the_published_node_list_is_read_whole(name: str, tmp_path: Path) -> None:
    traces = os.environ.get("ATOLL_TRACES", "")
    path = Path(traces) / "openb" / name
    if not traces:
        text = "sn,cpu_milli,memory_mib,gpu,model\n" + "".join(
            f"openb-node-{n:04d},64000,262144,2,P100\n" for n in range(1213)
        )
        path = tmp_path / name
        path.write_bytes(gzip.compress(text.encode()))
    nodes = read_cluster(path, "openb").nodes
    assert len(nodes) == 1213
    assert all(node.devices for node in nodes)
