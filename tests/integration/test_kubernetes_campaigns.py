"""Campaigns on the pods of a real Kubernetes: a study, what is refused, and the bad days."""

from __future__ import annotations

import base64
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

import pytest

from integration import kubernetes_config as config
from integration.kubernetes_lab import NO_STATIC, Kubernetes, kubernetes
from integration.user import CommandUser
from vtax.cluster.keys import make_keys
from vtax.cluster.seed import SSH, seed
from vtax.model.cluster import Image
from vtax.model.nodes import NodeShape, Role
from vtax.model.trial import Status
from vtax.providers.kubernetes import images, manifests, owned
from vtax.providers.kubernetes.options import KubernetesOptions
from vtax.store import Campaign

pytestmark = [pytest.mark.integration, pytest.mark.long, pytest.mark.kubernetes]

STUDY = """\
name = "pods"
seed = 1
rounds = {rounds}
baseline = "pods"
interleave = "cell"
[environments.pods]
provider = "kubernetes"
nodes = {{ master = "n1", worker1 = "n2" }}
{options}
[nodes]
workers = 1
cpus = 1
memory = "512 MiB"
[[benchmarks]]
name = "sysbench-cpu"
nodes = ["worker1"]
time_s = {seconds}
"""
HOST_NETWORK = """
[environments.hostnet]
provider = "kubernetes"
network = "host"
nodes = { master = "n1", worker1 = "n2" }
"""
HOST = """
[environments.host]
provider = "kubernetes-host"
nodes = { master = "n1", worker1 = "n2" }
"""
HPL = """
[[benchmarks]]
name = "hpl"
n = 500
"""
PODS = {"master": "n1", "worker1": "n2"}
ROLES = {"master": Role.MASTER, "worker1": Role.WORKER}
PLAIN_PORT = 5001  # of a registry that nodes take for one with TLS
WAIT_S = 240.0
TIMED = 3


class User(CommandUser):
    """A user of vtax with a kubeconfig of the cluster."""

    def __init__(self, cluster: Kubernetes, cache: Path, place: Path, state: Path) -> None:
        super().__init__(cluster.environment, cache, state, place, WAIT_S)
        self.cluster = cluster

    def command(self, *words: str) -> tuple[str, ...]:
        """In the lab's network, where its registry is."""
        return self.cluster.machines.enter(super().command(*words))

    def logs(self) -> str:
        return self.cluster.logs()

    def study(self, options: str = "", rounds: int = 1, seconds: int = 1) -> str:
        return str(self.written(STUDY.format(rounds=rounds, seconds=seconds, options=options)))

    def running_trial(self) -> bool:
        return any("sysbench" in line for line in self.cluster.machines.machines["n2"].processes())

    def start_trial(self, options: str = "") -> subprocess.Popen[bytes]:
        """A campaign of two rounds, in a trial of the first one."""
        made = self.start("run", self.study(options, rounds=2, seconds=15), "-o", str(self.campaign))
        self.wait(lambda: self.running_trial() or made.poll() is not None)
        assert made.poll() is None, self.log()
        return made

    def assert_second_round_only(self) -> None:
        """That the first round has failed, and the next one is measured."""
        found = self.statuses()
        assert [Status.OK if name.startswith("r002") else Status.FAILED for name in found] == list(found.values())
        assert {name.partition("-")[0] for name in found} == {"r001", "r002"}, self.log()

    def space(self) -> str:
        """The namespace that vtax has made."""
        (name,) = self.spaces()
        return name

    def spaces(self) -> list[str]:
        """Namespaces of vtax's; their Secrets and pods go with them."""
        found = [one["metadata"]["name"] for one in self.cluster.objects("namespaces")]
        return [name for name in found if name.startswith("vtax-")]

    def assert_nothing_is_left(self) -> None:
        assert self.spaces() == []
        assert self.cluster.objects("pods", "--all-namespaces") == []
        assert [one for one in self.cluster.objects("secrets", "--all-namespaces") if vtax_has(one)] == []


def vtax_has(secret: dict[str, dict[str, object]]) -> bool:
    return str(secret["metadata"]["namespace"]).startswith("vtax-")


@pytest.fixture(scope="module")
def archive(cache: Path, image: Image, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    path = tmp_path_factory.mktemp("archive") / "rootfs.tar"
    command = (sys.executable, "-m", "vtax", "image", "export", str(path))
    subprocess.run(command, env={**os.environ, "XDG_CACHE_HOME": str(cache)}, check=True, stdout=subprocess.DEVNULL)
    yield path
    path.unlink()


@pytest.fixture(scope="module")
def cluster(cache: Path, image: Image, archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kubernetes]:
    place = tmp_path_factory.mktemp("kubernetes")
    with kubernetes(cache, Path(image.directory).parent.parent, place) as made:
        made.load(archive)
        yield made


@pytest.fixture
def user(cluster: Kubernetes, cache: Path, tmp_path: Path, state: Path) -> Iterator[User]:
    made = User(cluster, cache, tmp_path, state)
    yield made
    made.end()
    for name in made.spaces():
        cluster.kubectl("delete", "namespace", name, "--timeout=60s")


def test_a_study_on_pods_where_it_says_with_cpus_of_their_own(user: User) -> None:
    said = user.vtax("run", user.study(HOST_NETWORK, rounds=2), "-o", str(user.campaign))
    assert "report:" in said
    assert set(user.statuses().values()) == {Status.OK} and len(user.statuses()) == 4
    for cell in Campaign.open(user.campaign).cells():
        pods = {one.node: one.values["pod"] for one in cell.facts}
        assert {name: pod["machine"] for name, pod in pods.items()} == PODS
        assert {pod["cpu_limit"] for pod in pods.values()} == {"cpuset"}
        assert {pod["qos"] for pod in pods.values()} == {"Guaranteed"}
    user.assert_nothing_is_left()


def test_missing_rights_are_named_before_anything_is_created_and_the_file_gives_them(user: User) -> None:
    restricted = str(user.cluster.kubeconfig("restricted"))
    study = user.study(HOST)
    said = [
        user.vtax("plan", study, KUBECONFIG=restricted),
        user.vtax("plan", "--check", study, code=3, KUBECONFIG=restricted),
        user.vtax("run", study, "-o", str(user.campaign), code=3, KUBECONFIG=restricted),
    ]
    for one in said:
        assert "create namespaces" in one and "create pods/exec" in one and "rbac.yaml" in one
    user.assert_nothing_is_left()
    rights = Path(__file__).parents[2] / "rbac.yaml"
    given = rights.read_text().replace("    name: vtax\n", "    name: restricted\n")
    user.cluster.kubectl("apply", "--filename=-", typed=given)
    try:
        user.vtax("run", study, "-o", str(user.campaign), KUBECONFIG=restricted)
    finally:
        user.cluster.kubectl("delete", "--filename=-", typed=given)
    assert {cell.environment for cell in Campaign.open(user.campaign).cells()} == {"pods", "host"}
    assert set(user.statuses().values()) == {Status.OK}
    user.assert_nothing_is_left()


def test_an_image_that_is_not_on_the_machines_is_named(user: User, archive: Path) -> None:
    names = user.cluster.machines.machines["n2"].inside("ctr", "--namespace=k8s.io", "images", "ls", "--quiet")
    ours = [name for name in names.splitlines() if "vtax-rootfs" in name]
    assert ours
    user.cluster.machines.machines["n2"].inside("ctr", "--namespace=k8s.io", "images", "rm", "--sync", *ours)
    try:
        said = user.vtax("run", user.study(), "-o", str(user.campaign), code=4)
    finally:
        user.cluster.load(archive)
    assert "pod worker1 does not start: its image is not on the machine" in said
    assert "ctr --namespace k8s.io images import" in said
    user.assert_nothing_is_left()


def test_an_image_is_pushed_to_the_registry_and_pulled_or_the_failure_is_named(user: User, tmp_path: Path) -> None:
    registry = user.cluster.serve_images()
    host = registry.partition(":")[0]
    other = f"{host}:{PLAIN_PORT}"
    user.cluster.serve_images(other)
    settings = tmp_path / "home/.config/containers/registries.conf"
    settings.parent.mkdir(parents=True)
    settings.write_text("".join(f'[[registry]]\nlocation = "{one}"\ninsecure = true\n' for one in (registry, other)))
    user.environment["HOME"] = str(tmp_path / "home")
    user.vtax("run", user.study(f'registry = "{registry}"'), "-o", str(user.campaign))
    assert set(user.statuses().values()) == {Status.OK}
    said = user.vtax("run", user.study(f'registry = "{other}"'), "-o", str(tmp_path / "second"), code=4)
    assert "does not start: its image cannot be pulled" in said and "HTTP response to HTTPS client" in said
    user.assert_nothing_is_left()


def test_machines_pull_with_the_login_of_the_registry_or_the_failure_is_named(user: User, tmp_path: Path) -> None:
    registry = user.cluster.serve_images(config.LOGIN_REGISTRY, login=True)
    settings = tmp_path / "home/.config/containers/registries.conf"
    settings.parent.mkdir(parents=True)
    settings.write_text(f'[[registry]]\nlocation = "{registry}"\ninsecure = true\n')
    user.environment |= {"HOME": str(tmp_path / "home"), "REGISTRY_AUTH_FILE": str(tmp_path / "auth.json")}
    study = user.study(f'registry = "{registry}"\nregistry_login = true')
    said = user.vtax("run", study, "-o", str(user.campaign), code=3)
    assert f"there is no login of {registry} for the machines" in said and f"skopeo login {registry}" in said
    token = base64.b64encode(":".join(config.LOGIN).encode()).decode()
    (tmp_path / "auth.json").write_text(json.dumps({"auths": {registry: {"auth": token}}}))
    user.vtax("run", study, "-o", str(user.campaign))
    assert set(user.statuses().values()) == {Status.OK}
    kept = "".join(path.read_text(errors="replace") for path in user.campaign.rglob("*.json"))
    assert "imagePullSecrets" in kept and token not in kept
    other = user.study(f'registry = "{registry}/other"')
    said = user.vtax("run", other, "-o", str(tmp_path / "second"), code=4)
    assert "does not start: its image cannot be pulled" in said and "registry_login" in said
    user.assert_nothing_is_left()


def test_a_deleted_pod_fails_its_trial_and_the_next_round_goes_on(user: User) -> None:
    running = user.start_trial()
    user.cluster.kubectl("delete", "pod", "worker1", f"--namespace={user.space()}")
    assert running.wait(WAIT_S) == 4, user.log()
    assert "pod worker1" in user.log() and "deleted" in user.log()
    user.assert_second_round_only()
    user.assert_nothing_is_left()


def test_an_evicted_pod_fails_its_trial_and_the_next_round_goes_on(user: User) -> None:
    running = user.start_trial()
    user.cluster.drain("n2")
    user.cluster.kubectl("uncordon", "n2")
    assert running.wait(WAIT_S) == 4, user.log()
    assert "pod worker1" in user.log()
    user.assert_second_round_only()
    user.assert_nothing_is_left()


def test_an_api_server_that_restarts_is_waited_for(user: User) -> None:
    running = user.start_trial()
    user.cluster.restart_api_server(away_s=5)
    assert running.wait(WAIT_S) in (0, 4), user.log()
    found = user.statuses()
    assert {status for name, status in found.items() if name.startswith("r002")} == {Status.OK}, user.log()
    assert "API server" in user.log() or set(found.values()) == {Status.OK}
    user.assert_nothing_is_left()


def test_a_cordoned_machine_is_named(user: User) -> None:
    user.cluster.kubectl("cordon", "n2")
    try:
        assert "machine n2 is cordoned" in user.vtax("run", user.study(), "-o", str(user.campaign), code=3)
    finally:
        user.cluster.kubectl("uncordon", "n2")


def test_clean_removes_everything_after_vtax_was_killed(user: User) -> None:
    """A cluster of nodes, and the pods by which the machines are entered."""
    running = user.start_trial(HOST)
    spaces = user.spaces()
    assert len(spaces) >= len(PODS)
    os.killpg(running.pid, signal.SIGKILL)
    running.wait()
    study = user.study(HOST)
    listed = user.vtax("clean", "--check", "--machines", study, code=5)
    assert [name for name in spaces if name not in listed] == []
    user.vtax("clean", "--machines", study)
    user.assert_nothing_is_left()
    user.wait(lambda: not user.running_trial())


def test_images_go_from_registry_and_machines_when_that_is_asked_for(
    user: User, archive: Path, image: Image, tmp_path: Path
) -> None:
    """Those that were imported there go too."""
    registry = user.cluster.serve_images()
    settings = tmp_path / "home/.config/containers/registries.conf"
    settings.parent.mkdir(parents=True)
    settings.write_text(f'[[registry]]\nlocation = "{registry}"\ninsecure = true\n')
    user.environment["HOME"] = str(tmp_path / "home")
    study = user.study(HOST.replace("[environments.host]", f'registry = "{registry}"\n[environments.host]'))
    user.vtax("run", study, "-o", str(user.campaign))
    assert "nothing is left behind" in user.vtax("clean", "--machines", study)
    pushed = images.name_of(KubernetesOptions(nodes=PODS, registry=registry), image)
    try:
        listed = user.vtax("clean", "--machines", study, "--images", "--check", code=5)
        assert pushed in listed and "root file system" in listed and "docker.io/library/vtax-rootfs" in listed
        user.vtax("clean", "--machines", study, "--images")
        pods = user.study(f'registry = "{registry}"')  # no pod could enter a machine now
        assert "nothing is left behind" in user.vtax("clean", "--machines", pods, "--images", "--check")
        for node in user.cluster.nodes:
            machine = user.cluster.machines.machines[node]
            there = machine.inside("ctr", "--namespace=k8s.io", "images", "ls")
            assert "vtax-rootfs" not in there and "busybox" in there
            assert machine.inside("sh", "-c", "find /var/tmp/vtax-0 -name 'rootfs*'") == ""
    finally:
        user.cluster.load(archive)
    assert Path(image.archive).exists()  # on this computer it stays


def test_pods_are_verified_nearly_as_fast_as_kubectl_sees_them_ready(user: User, image: Image, tmp_path: Path) -> None:
    """With a launch of MPI on all nodes, and the same objects for kubectl; medians, because others use this computer
    too."""
    study = user.written(STUDY.format(rounds=TIMED, seconds=1, options="") + HPL)
    user.vtax("run", str(study), "-o", str(user.campaign))
    cells = list(Campaign.open(user.campaign).cells())
    assert all(any("mpi world" in check for check in cell.checks) for cell in cells)
    ours = [cell.provision_s for cell in cells]
    theirs = [kubectl_s(user.cluster, image, tmp_path / f"keys-{number}") for number in range(TIMED)]
    print(f"vtax: {ours}; kubectl: {theirs}")  # noqa: T201
    assert len(ours) == TIMED
    assert median(ours) <= 1.5 * median(theirs)


def kubectl_s(cluster: Kubernetes, image: Image, keys: Path) -> float:
    """How long kubectl takes to see pods Ready that are asked for as vtax does it, s, from their creation."""
    nodes = [
        NodeShape(name=name, role=role, cpus=1, cpu_ids=(0,), memory_bytes=2**29, disk_bytes=0)
        for name, role in ROLES.items()
    ]
    options = KubernetesOptions(nodes=PODS)
    owner = manifests.Owner("0123abcd", "/nowhere", "here")
    order = manifests.Order(owner, owned.new_name("0123abcd"), options, images.name_of(options, image), SSH, "/shared")
    make_keys(keys, list(PODS))
    seeds = {name: seed(keys, name, dict(zip(PODS, PODS, strict=True)), dict.fromkeys(PODS, 1)) for name in PODS}
    typed = manifests.document(order.objects(nodes, [order.seeds(seeds)])).decode()
    where = f"--namespace={order.space}"
    began = time.monotonic()
    cluster.kubectl("create", "--filename=-", typed=typed)
    cluster.kubectl("wait", where, "--for=condition=Ready", "--timeout=60s", *(f"pod/{name}" for name in PODS))
    took_s = time.monotonic() - began
    cluster.kubectl("delete", "namespace", order.space, "--timeout=60s")
    return took_s


def test_without_static_policy_on_all_machines_it_is_refused(
    cache: Path, image: Image, archive: Path, tmp_path: Path, state: Path
) -> None:
    place = tmp_path / "lab"
    place.mkdir()
    with kubernetes(cache, Path(image.directory).parent.parent, place, NO_STATIC) as made:
        made.load(archive)
        user = User(made, cache, tmp_path, state)
        said = user.vtax("run", user.study('cpu_limit = "cpuset"'), "-o", str(user.campaign), code=4)
        assert "pods have no exclusive CPUs, which the study demands" in said and 'cpuManagerPolicy "static"' in said
        said = user.vtax("run", user.study(), "-o", str(tmp_path / "second"), code=4)
        assert "some pods have exclusive CPUs, and others only a quota" in said
        assert "worker1 on n2: 1 planned, 2 of 2 allowed" in said
        user.assert_nothing_is_left()
