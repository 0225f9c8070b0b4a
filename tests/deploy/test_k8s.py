import tomllib

import pytest
import yaml

from tests.deploy.manifests import K8S, ROOT, Yaml, containers, objects, pods

OBJECTS = objects()
PODS = dict(pods())
SECRETS = {"atoll-store", "atoll-tls", "atoll-etcd", "atoll-agent-tls"}
GUIDE = (ROOT / "docs" / "deploy.md").read_text()


def names(kind: str) -> set[str]:
    return {made["metadata"]["name"] for made in OBJECTS if made["kind"] == kind}


def test_every_file_is_a_resource_of_the_kustomization() -> None:
    listed = yaml.safe_load((K8S / "kustomization.yaml").read_text())
    files = {path.name for path in K8S.glob("*.yaml")} - {"kustomization.yaml"}
    assert set(listed["resources"]) == files
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert listed["images"] == [{"name": "atoll", "newTag": version}]


def test_the_guide_names_every_secret() -> None:
    used = {
        volume["secret"]["secretName"]
        for pod in PODS.values()
        for volume in pod["volumes"]
        if "secret" in volume
    }
    assert used == SECRETS
    for secret in SECRETS:
        assert f"| `{secret}` |" in GUIDE


def test_everything_is_in_the_namespace() -> None:
    for made in OBJECTS:
        if made["kind"] != "Namespace":
            assert made["metadata"]["namespace"] == "atoll", made["metadata"]["name"]


@pytest.mark.parametrize("name", PODS)
def test_pods_are_restricted(name: str) -> None:
    pod = PODS[name]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    for container in containers(pod):
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }
        assert container["resources"]["requests"]
        assert container["resources"]["limits"]["memory"]
        assert "/tmp" in {mount["mountPath"] for mount in container["volumeMounts"]}


@pytest.mark.parametrize("name", PODS)
def test_what_a_pod_refers_to_is_there(name: str) -> None:
    pod = PODS[name]
    assert pod["serviceAccountName"] in names("ServiceAccount")
    volumes = {volume["name"]: volume for volume in pod["volumes"]}
    for volume in volumes.values():
        if secret := volume.get("secret"):
            assert secret["secretName"] in SECRETS
        if claim := volume.get("persistentVolumeClaim"):
            assert claim["claimName"] in names("PersistentVolumeClaim")
    for container in containers(pod):
        assert {mount["name"] for mount in container["volumeMounts"]} <= set(volumes)


@pytest.mark.parametrize(
    "name",
    ["atoll-submission", "atoll-placement", "atoll-dispatch", "atoll-reservation", "atoll-burst"],
)
def test_services_have_replicas_probes_a_budget_and_a_name(name: str) -> None:
    (workload,) = (
        made
        for made in OBJECTS
        if made["metadata"]["name"] == name and made["kind"] in {"Deployment", "StatefulSet"}
    )
    assert workload["spec"]["replicas"] >= 2
    assert name in names("PodDisruptionBudget")
    (container,) = PODS[name]["containers"]
    assert {"startupProbe", "readinessProbe", "livenessProbe"} <= set(container)
    assert [init["args"] for init in PODS[name]["initContainers"]] == [["schema"]]
    if workload["kind"] == "StatefulSet":
        assert _service(workload["spec"]["serviceName"])["spec"]["clusterIP"] == "None"
        told = {entry["name"]: entry.get("value") for entry in container["env"]}
        assert workload["spec"]["serviceName"] in told["ATOLL_ADVERTISE"]


def test_nothing_gets_in_or_out_unless_it_is_named() -> None:
    (rest,) = (
        made
        for made in OBJECTS
        if made["kind"] == "NetworkPolicy" and made["spec"]["podSelector"] == {}
    )
    assert rest["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in rest["spec"]


def test_probes_ask_ports_that_exist() -> None:
    for pod in PODS.values():
        for container in pod["containers"]:
            ports = {port["name"] for port in container.get("ports", ())}
            for kind in ("startupProbe", "readinessProbe", "livenessProbe"):
                if probe := container.get(kind):
                    assert probe["httpGet"]["port"] in ports


def _service(name: str) -> Yaml:
    (found,) = (
        made for made in OBJECTS if made["kind"] == "Service" and made["metadata"]["name"] == name
    )
    return found
