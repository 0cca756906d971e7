"""The exact command lines of Docker and Podman, the networks that they use, and the Compose file."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from fakes.cluster import node_shape, result_of
from vtax.model.cluster import Image
from vtax.model.trial import CommandResult
from vtax.providers import overlay
from vtax.providers.container import engine, images, provider, starting
from vtax.providers.container.engine import ContainerOptions, first_line
from vtax.providers.docker.provider import Docker
from vtax.providers.podman.provider import Podman
from vtax.transport import process

IMAGE = Image(recipe="key", digest="0123456789abcdef" * 4, directory="/cache/tree", archive="/cache/rootfs.tar")
TAG = "vtax-rootfs:0123456789ab"
WORKER = node_shape("worker1", (2, 3))
PLACES = engine.addresses("10.213.7", ("master", "worker1", "worker2"))

HEAD = "create --name vtax-c1-worker1 --hostname worker1 --label vtax.campaign=c1 --label vtax.runtime=/run/vtax"
OWNER = engine.Owner("c1", "/run/vtax")
NETWORK = "--network vtax-c1 --ip 10.213.7.11 --add-host master:10.213.7.10 --add-host worker2:10.213.7.12"
MEMORY = "--memory 2147483648 --memory-swap 2147483648"
CONFINED = "--security-opt no-new-privileges --pids-limit 16384"
TAIL = f"--volume vtax-c1:/shared {TAG}"


def created(program: str, **options: object) -> str:
    chosen = ContainerOptions.model_validate(options)
    return " ".join(engine.create_node(program, OWNER, WORKER, chosen, TAG, PLACES, "/shared"))


@pytest.mark.parametrize("program", ["docker", "podman"])
def test_a_node_with_its_own_cpus(program: str) -> None:
    """The quota is half a CPU above the two that it has, so that it never binds first."""
    assert created(program) == (
        f"{program} {HEAD} {NETWORK} --publish 127.0.0.1::22 --cpuset-cpus 2,3 --cpu-period 100000 --cpu-quota 250000 "
        f"{MEMORY} --shm-size 268435456 {CONFINED} {TAIL}"
    )


@pytest.mark.parametrize(
    ("place", "source"), [("/run/c1/worker1/workload", "source={}"), ('/a,b"c', '"source=/a,b""c/{}"')]
)
def test_a_node_with_an_image_of_the_study(place: str, source: str) -> None:
    words = engine.create_node("podman", OWNER, WORKER, ContainerOptions(), TAG, PLACES, "/shared", Path(place))
    found = [words[number + 1] for number, word in enumerate(words) if word == "--mount"]
    sources = [source.format(f"{place}/{name}" if "," not in place else name) for name in ("root", *overlay.FILES)]
    assert found == [
        f"type=bind,{sources[0]},target=/workload/root",
        f"type=bind,{sources[1]},target=/workload/config,readonly",
        f"type=bind,{sources[2]},target=/workload/entry,readonly",
        f"type=bind,{sources[3]},target=/workload/workload.json,readonly",
    ]
    assert words[-1] == TAG


def test_a_node_with_an_exact_quota() -> None:
    assert created("docker", cpu_limit="quota") == (
        f"docker {HEAD} {NETWORK} --publish 127.0.0.1::22 --cpu-period 100000 --cpu-quota 200000 "
        f"{MEMORY} --shm-size 268435456 {CONFINED} {TAIL}"
    )


def test_a_node_with_a_handicap_keeps_its_cpus() -> None:
    """95 % of two CPUs are 190 ms in every 100 ms."""
    assert "--cpuset-cpus 2,3 --cpu-period 100000 --cpu-quota 190000 " in created("docker", cpu_share=0.95)
    assert "--cpu-period 100000 --cpu-quota 190000 " in created("docker", cpu_share=0.95, cpu_limit="quota")


def test_a_node_under_another_runtime() -> None:
    assert created("podman", runtime="runsc", shm="64 MiB") == (
        f"podman {HEAD} --runtime runsc {NETWORK} --publish 127.0.0.1::22 --cpuset-cpus 2,3 --cpu-period 100000 "
        f"--cpu-quota 250000 {MEMORY} --shm-size 67108864 {CONFINED} {TAIL}"
    )


def test_a_node_in_the_network_of_this_machine() -> None:
    """No network of its own, nothing published; the other names lead to loopback addresses."""
    places = engine.addresses("127.213.7", ("master", "worker1", "worker2"))
    options = ContainerOptions(network="host")
    assert " ".join(engine.create_node("docker", OWNER, WORKER, options, TAG, places, "/shared")) == (
        f"docker {HEAD} --network host --add-host master:127.213.7.10 --add-host worker2:127.213.7.12 "
        f"--cpuset-cpus 2,3 --cpu-period 100000 --cpu-quota 250000 {MEMORY} --shm-size 268435456 {CONFINED} {TAIL}"
    )


def test_every_attempt_tries_other_loopback_addresses_and_another_port() -> None:
    tried = [engine.loopback("c1", attempt) for attempt in range(20)]
    assert len({prefix for prefix, _ in tried}) == len({port for _, port in tried}) == 20
    assert all(prefix.startswith("127.213.") and 20_000 <= port < 30_000 for prefix, port in tried)


def test_nothing_is_published_beyond_loopback() -> None:
    words = created("docker").split()
    published = [words[i + 1] for i, word in enumerate(words) if word == "--publish"]
    assert published == ["127.0.0.1::22"]
    assert "--privileged" not in words


@pytest.mark.parametrize("options", [{"shm": True}, {"shm": "1 KiB"}, {"runtime": "--privileged"}, {"cpus": 1}])
def test_options_that_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ContainerOptions.model_validate_json(json.dumps(options), strict=True)


def test_the_network_and_the_volume() -> None:
    assert " ".join(engine.create_network("docker", OWNER, "10.213.7")) == (
        "docker network create --subnet 10.213.7.0/24 --label vtax.campaign=c1 --label vtax.runtime=/run/vtax vtax-c1"
    )
    assert " ".join(engine.create_volume("podman", OWNER)) == (
        "podman volume create --label vtax.campaign=c1 --label vtax.runtime=/run/vtax vtax-c1"
    )


def test_the_import_of_the_root_file_system() -> None:
    assert engine.import_image("docker", IMAGE) == (
        "docker",
        "import",
        "--change",
        'CMD ["/usr/local/bin/node-init"]',
        "--change",
        "LABEL vtax.image=0123456789ab",
        "/cache/rootfs.tar",
        TAG,
    )


# --- networks ------------------------------------------------------------------------------------------------------


@given(st.text(max_size=12))
def test_a_campaign_tries_every_network_once(campaign: str) -> None:
    tried = [engine.subnet(campaign, attempt) for attempt in range(engine.NETWORKS)]
    assert sorted(tried) == sorted(f"10.213.{number}" for number in range(1, 201))


def test_campaigns_begin_at_different_networks() -> None:
    assert len({engine.subnet(f"campaign-{number}", 0) for number in range(20)}) > 10


ROUTES = """\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t010011AC\t0003\t0\t0\t0\t00000000\t0\t0\t0
docker0\t000011AC\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0
br-1\t0007D50A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
"""


@pytest.mark.parametrize(
    ("prefix", "taken"), [("10.213.7", True), ("10.213.8", False), ("10.213.70", False), ("172.17.0", True)]
)
def test_a_network_with_a_route_is_taken(prefix: str, taken: bool) -> None:
    """0007D50A is 10.213.7.0 in the byte order of the machine."""
    assert engine.routed(prefix, ROUTES) is taken


def test_without_routes_nothing_is_taken() -> None:
    assert not engine.routed("10.213.7", "")


def test_addresses_are_known_before_anything_starts() -> None:
    assert PLACES == {"master": "10.213.7.10", "worker1": "10.213.7.11", "worker2": "10.213.7.12"}


# --- Compose -------------------------------------------------------------------------------------------------------


def service(text: str, name: str) -> dict[str, str]:
    """The `key: value` lines of one service."""
    block = text.partition(f"\n  {name}:\n")[2]
    lines = []
    for line in block.splitlines():
        if not line.startswith("    "):
            break
        lines.append(line.strip())
    return dict(re.findall(r"^(\w+): ?(.*)$", "\n".join(lines), re.MULTILINE))


LOAD = f"docker import --change 'CMD [\"x\"]' /cache/rootfs.tar {TAG}"


def compose_service(name: str, cpuset: str, quota: int, other: str, address: str) -> str:
    return (
        f"  {name}:\n"
        f"    image: {TAG}\n"
        '    command: ["sh", "-c", "ssh-keygen -q -A && exec node-init"]\n'
        f"    hostname: {name}\n"
        f'    cpuset: "{cpuset}"\n'
        "    cpu_period: 100000\n"
        f"    cpu_quota: {quota}\n"
        "    mem_limit: 2147483648\n"
        "    memswap_limit: 2147483648\n"
        "    shm_size: 268435456\n"
        "    pids_limit: 16384\n"
        '    security_opt: ["no-new-privileges"]\n'
        '    ports: ["127.0.0.1::22"]\n'
        '    volumes: ["shared:/shared", "./keys:/root/.ssh"]\n'
        "    extra_hosts:\n"
        f'      - "{other}"\n'
        "    networks:\n"
        f"      cluster: {{ipv4_address: {address}}}\n"
    )


def test_the_compose_file_of_a_cluster() -> None:
    nodes = (node_shape("master", (4,)), WORKER)
    text = engine.compose("c1", nodes, ContainerOptions(), LOAD, "10.213.7", "/shared")
    comments = [line for line in text.splitlines() if line.startswith("#")]
    assert comments[0] == "# Written by `vtax compose`. Once, before `docker compose up -d`:"
    assert comments[1] == f"#   {LOAD}"
    assert text.partition("name: vtax-c1\n")[2] == (
        "services:\n"
        + compose_service("master", "4", 150_000, "worker1:10.213.7.11", "10.213.7.10")
        + compose_service("worker1", "2,3", 250_000, "master:10.213.7.10", "10.213.7.11")
        + "volumes:\n"
        "  shared: {}\n"
        "networks:\n"
        "  cluster:\n"
        "    ipam: {config: [{subnet: 10.213.7.0/24}]}\n"
    )


@pytest.mark.parametrize("limit", ["cpuset", "quota"])
def test_compose_and_create_set_the_same_limits(limit: str) -> None:
    options = ContainerOptions.model_validate({"cpu_limit": limit, "runtime": "runsc"})
    words = engine.create_node("docker", OWNER, WORKER, options, TAG, PLACES, "/shared")
    flags = dict(pairwise(words))
    made = service(engine.compose("c1", (WORKER,), options, LOAD, "10.213.7", "/shared"), "worker1")
    assert made.get("cpuset") == (f'"{flags["--cpuset-cpus"]}"' if limit == "cpuset" else None)
    assert made["cpu_period"] == flags["--cpu-period"]
    assert made["cpu_quota"] == flags["--cpu-quota"]
    assert made["mem_limit"] == flags["--memory"]
    assert made["memswap_limit"] == flags["--memory-swap"]
    assert made["shm_size"] == flags["--shm-size"]
    assert made["pids_limit"] == flags["--pids-limit"]
    assert made["security_opt"] == f'["{flags["--security-opt"]}"]'
    assert made["runtime"] == flags["--runtime"]


@pytest.mark.parametrize(
    "log",
    [
        "2026-11-22T16:11:24.250000000Z vtax-init started\n2026-11-22T16:11:25.5Z more\n",  # Docker
        "2026-11-22T17:11:24.250000+01:00 vtax-init started\n",  # Podman, where this machine is an hour ahead
    ],
)
def test_the_first_line_of_a_log_says_when_it_was_written(log: str) -> None:
    assert first_line(log) == datetime(2026, 11, 22, 16, 11, 24, 250_000, UTC).timestamp()


def test_a_log_without_a_line_says_nothing() -> None:
    assert first_line("") is None
    assert first_line("exec failed\n") is None


def test_the_process_of_a_container_is_the_runner_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "parent_of", {40: 39, 50: 1}.get)
    monkeypatch.setattr(starting, "program_of", {39: "conmon", 1: "init"}.get)
    assert starting.runner_of({"State": {"Pid": 40}}, ("conmon",)) == 39
    assert starting.runner_of({"State": {"Pid": 50}}, ("conmon",)) is None  # of another machine, by chance


class Store:
    """An engine's store of images: tag -> id. Every import gives a new id, as a time of creation does."""

    def __init__(self) -> None:
        self.tags: dict[str, str] = {}
        self.imports = 0

    def run(self, words: Sequence[str]) -> CommandResult:
        if words[0] == "import":
            self.imports += 1
            self.tags[words[-1]] = f"sha256:{self.imports}"
        if words[0] == "rmi":
            return result_of(words, (0, self.tags.pop(words[-1]), ""))
        found = self.tags.get(words[-1])
        return result_of(words, (0, f"{found}\n", "") if found else (1, "", "no such image"))


def test_an_image_that_was_not_imported_here_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store()
    monkeypatch.setattr(provider.Container, "run", lambda self, words, *rest, **more: store.run(words))
    image = IMAGE.model_copy(update={"archive": str(tmp_path / "rootfs.tar")})
    docker = Docker(tmp_path / "run")
    store.tags[TAG] = "sha256:planted"
    assert images.ensure(docker, image) == TAG
    assert store.tags[TAG] == "sha256:1", "imported, although there is an image of that name"
    images.ensure(docker, image)
    assert store.imports == 1
    store.tags[TAG] = "sha256:replaced"
    images.ensure(docker, image)
    assert store.tags[TAG] == "sha256:2"
    docker.remove_image(image)
    assert store.tags == {}
    assert not list(tmp_path.glob("*-id"))


def test_two_engines_that_share_a_home_directory_each_import_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Machines with one home directory: each engine gives its import another id, and both are this user's."""
    here, there = Store(), Store()
    there.imports = 10
    image = IMAGE.model_copy(update={"archive": str(tmp_path / "rootfs.tar")})
    for store in (here, there, here, there):
        monkeypatch.setattr(provider.Container, "run", lambda self, words, *rest, store=store, **more: store.run(words))
        images.ensure(Docker(tmp_path / "run"), image)
    assert (here.imports, there.imports) == (1, 11)


def test_images_that_nothing_names_or_uses_are_stray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def answer(self: object, words: Sequence[str], *rest: object, **more: object) -> CommandResult:
        if words[0] == "images":
            return result_of(words, (0, "sha256:1\nsha256:2\nsha256:1\n", ""))
        return result_of(words, (0, "c0ffee\n" if words[-1] == "ancestor=sha256:2" else "", ""))

    monkeypatch.setattr(provider.Container, "unavailable", lambda self: "")
    monkeypatch.setattr(provider.Container, "run", answer)
    assert Docker(tmp_path).stray_images() == ["sha256:1"]


def test_a_copy_of_the_keys_stays_in_the_directory_of_the_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Podman writes what it is to copy into TMPDIR first; a kill would leave it there."""
    given: list[tuple[tuple[str, ...], object]] = []

    def run(argv: Sequence[str], **more: object) -> CommandResult:
        given.append((tuple(argv), more["directory"]))
        ports = {"22/tcp": [{"HostPort": "2222"}]}
        return result_of(argv, (0, json.dumps([{"State": {"Pid": 0}, "NetworkSettings": {"Ports": ports}}]), ""))

    monkeypatch.setattr(process, "run", run)
    monkeypatch.setattr(starting, "wait_for_banner", lambda *words, **more: None)
    order = starting.Order("c1c1c1c1", "worker1", ("podman", "create"), b"keys", "127.0.0.1", None)
    port, _ = starting.start(Podman(tmp_path), order, deadline=0)
    assert port == 2222
    place = tmp_path / "c1c1c1c1"
    copied = ("env", f"TMPDIR={place}", "podman", "cp", "-", "vtax-c1c1c1c1-worker1:/")
    assert (copied, place) in given
