"""The clusters file."""

from pathlib import Path

import pytest
import yaml
from pydantic import SecretStr

from atoll.agent.simcluster.description import read_cluster
from atoll.burst.settings import BurstSettings
from atoll.core.model.errors import InvalidInput
from atoll.embedded.bring_up import clusters_file
from atoll.embedded.clusters import Cluster, Clusters, read_clusters, write_clusters
from tools.demo_burst_load import QUICK
from tools.demo_burst_load import clusters as demo_clusters

EXAMPLES = Path(__file__).parents[3] / "deploy" / "clusters"


def test_this_machine_comes_first() -> None:
    only = Cluster(name="sim", backend="simulated", cluster={"nodes": []})
    assert [c.name for c in Clusters(clusters=(only,)).with_local().clusters] == ["local", "sim"]


def test_a_cluster_named_local_takes_this_machines_place() -> None:
    own = Clusters(clusters=(Cluster(name="local", settings={"measure_load": True}),))
    assert own.with_local() == own


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    clusters = Clusters(
        clusters=(
            Cluster(name="a", backend="simulated", cluster=tmp_path / "nodes.csv"),
            Cluster(name="b", backend="simulated", cluster={"nodes": [{"name": "n"}]}),
        )
    ).with_local()
    write_clusters(tmp_path / "clusters.yaml", clusters)
    assert read_clusters(tmp_path / "clusters.yaml") == clusters


def test_settings_of_the_broker_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "clusters.yaml"
    file.write_text("burst: {policy_per_hour: 2.5, providers: {process: {lead_s: 1}}}")
    write_clusters(file, read_clusters(file).with_local())
    given = {"policy_per_hour": 2.5, "providers": {"process": {"lead_s": 1}}}
    assert read_clusters(file).burst == given


def test_the_demos_broker_understands_what_it_is_told() -> None:
    given = Clusters.model_validate(demo_clusters(QUICK)).burst
    settings = BurstSettings(
        dsn=SecretStr("postgresql:///x"), join_secret=SecretStr("s" * 16), **given
    )
    assert settings.providers["process"]["zones"]["attic"]["boots"] is False
    assert settings.terms.options.end_s == given["instance_end_s"]
    assert settings.terms.options.least_keep_s == given["least_keep_s"]


def test_a_description_is_found_beside_the_file(tmp_path: Path) -> None:
    file = tmp_path / "clusters.yaml"
    file.write_text("clusters: [{name: a, backend: simulated, cluster: nodes.csv}]")
    assert read_clusters(file).clusters[0].cluster == tmp_path / "nodes.csv"


@pytest.mark.parametrize(
    ("text", "field"),
    [
        ("clusters: [{name: A B}]", "clusters.0.name"),
        ("clusters: [{name: a, backend: slurm}]", "clusters.0.backend"),
        ("clusters: [{name: a, backend: simulated}]", "clusters.0"),
        ("clusters: [{name: a, cluster: {}}]", "clusters.0"),
        ("clusters: [{name: a}, {name: a}]", ""),
        ("cluster: []", "cluster"),
        ("clusters: [", ""),
    ],
)
def test_a_mistake_is_told_with_its_place(tmp_path: Path, text: str, field: str) -> None:
    file = tmp_path / "clusters.yaml"
    file.write_text(text)
    with pytest.raises(InvalidInput) as wrong:
        read_clusters(file)
    assert wrong.value.violations[0].field == f"{file}.{field}".rstrip(".")


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="No such file"):
        read_clusters(tmp_path / "none.yaml")


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_an_example_can_be_read_and_is_found_by_its_name(path: Path) -> None:
    assert read_clusters(path) == read_clusters(clusters_file(path.stem))


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_the_agent_understands_the_clusters_of_an_example(path: Path, tmp_path: Path) -> None:
    for cluster in read_clusters(path).clusters:
        file = tmp_path / f"{cluster.name}.yaml"
        file.write_text(yaml.safe_dump(cluster.cluster))
        assert read_cluster(file, cluster.name).nodes


def test_there_are_examples() -> None:
    assert {path.stem for path in EXAMPLES.glob("*.yaml")} >= {"demo", "simulated"}


def test_what_is_no_example_is_a_path() -> None:
    assert clusters_file("../demo") == Path("../demo")
    assert clusters_file("mine.yaml") == Path("mine.yaml")
