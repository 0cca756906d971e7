"""vtax killed at random moments, again and again, across its commands and providers."""

from __future__ import annotations

import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from vtax.image import build
from vtax.providers import all_providers
from vtax.store import Campaign

from ..test_bad_days import write
from .campaigns import complete, continued, reported, small
from .conftest import Begin
from .harness import KILLS, Chaos, digests, printed, share
from .test_at_once import ended

pytestmark = [pytest.mark.integration, pytest.mark.alone]
DATA = Path(__file__).parents[2] / "data"
BOOT_S = 60.0  # of two emulated machines, on a busy machine
long = pytest.mark.long


@pytest.mark.parametrize(
    ("names", "weight"),
    [
        pytest.param(("host",), 1.0, marks=long, id="host"),
        pytest.param(("docker",), 1.0, marks=long, id="docker"),
        pytest.param(("podman",), 1.0, marks=long, id="podman"),
        pytest.param(("qemu",), 0.3, marks=long, id="qemu"),
        pytest.param(("host", "docker"), 1.0, id="alternating"),
    ],
)
def test_a_campaign(names: Sequence[str], weight: float, chaos: Begin, tmp_path: Path) -> None:
    path = write(tmp_path, small(names))
    one = chaos(f"campaign: {' and '.join(names)}", limit_s=400 if "qemu" in names else 180)
    within_s = BOOT_S if "qemu" in names else 5.0 * len(names)
    while one.more(share(weight), "run", "run --resume"):
        if not one.kill(*continued(one, path), within_s=within_s):
            complete(one)
            one.again()
        elif one.random.random() < 0.5:
            one.clean()
    one.finish(*continued(one, path))
    complete(one)
    assert len(names) == 1 or Campaign.open(one.campaign).plan().interleave == "trial"
    reported(one, share(0.3))
    one.clean()


def test_an_import(chaos: Begin, tmp_path: Path) -> None:
    one = chaos("import of logs")
    logs = tmp_path / "logs"
    for number, source in enumerate(sorted(DATA.glob("*/*/0-worker1.stdout"))):
        for environment in ("host", "vm"):
            place = logs / environment / f"{number}.txt"
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(source.read_bytes() + b"\n" * (environment == "vm"))  # equal files count once
    words = ("import", str(logs), "--layout", "{environment}/**", "--into")
    never = tmp_path / "never" / "c"
    one.finish(*words, str(never))
    while one.more(KILLS, "import"):
        one.kill(*words, str(one.campaign), within_s=1.0)
        if (one.campaign / "plan.json").exists():  # it is written last
            assert digests(one.campaign) == digests(never)
            one.again()
    if not (one.campaign / "plan.json").exists():
        one.finish(*words, str(one.campaign))
    assert digests(one.campaign) == digests(never)
    reported(one, share(0.5))
    one.finish("report", str(never))
    assert (one.campaign / "analysis.json").read_bytes() == (never / "analysis.json").read_bytes()


@long
@pytest.mark.parametrize(
    ("name", "weight"),
    [
        ("host", 1.0),
        pytest.param("docker", 0.5, marks=long),
        pytest.param("podman", 0.5, marks=long),
        pytest.param("qemu", 0.15, marks=long),
    ],
)
def test_clusters_for_a_person(name: str, weight: float, chaos: Begin, tmp_path: Path) -> None:
    """A cluster is up, and its nodes answer, or `vtax clean` removes all of it; also one that was being taken down."""
    one = chaos(f"up and down: {name}", limit_s=400 if name == "qemu" else 180)
    up = ("up", name, "--study", str(write(tmp_path, small([name]))))
    saved = one.places.state / "clusters" / f"{name}.json"
    while one.more(share(weight), "up"):
        one.kill(*up, within_s=BOOT_S if name == "qemu" else 6.0)
        if saved.exists():
            taken_down(one, name)
        elif one.random.random() < 0.7:
            one.clean()
    if not saved.exists():
        one.finish(*up)
    taken_down(one, name)
    one.clean()


def taken_down(one: Chaos, name: str) -> None:
    """A cluster that is up answers, whatever `vtax clean` is run, and goes, however often that is interrupted."""
    one.finish("clean")
    status = one.start("status")
    status.good()
    assert status.text().count("answers") == 2, status.text()
    saved = one.places.state / "clusters" / f"{name}.json"
    for _ in range(3):  # one that is killed when it has just finished leaves nothing to take down
        if saved.exists() and not one.kill("down", name, within_s=1.5):
            break
    if saved.exists():
        one.finish("down", name)
    one.clean()


@long
@pytest.mark.parametrize("engine", ["docker", "podman"])
def test_the_import_of_the_root_file_system(engine: str, chaos: Begin, tmp_path: Path) -> None:
    """Killed while an engine reads the root file system: no second image of it is left in its store."""
    one = chaos(f"import into {engine}")
    up = ("up", engine, "--study", str(write(tmp_path, small([engine]))))
    before = images(engine)
    while one.more(share(0.1), "up"):
        for tag in images(engine):
            printed(engine, "rmi", tag)
        if not one.kill(*up, within_s=8.0):
            one.finish("down", engine)
    one.finish(*up)
    one.finish("down", engine)
    one.clean()
    after = images(engine)
    assert len(after) <= max(1, len(before)), after
    assert all_providers(one.places.runtime)[engine].stray_images() == []


def images(engine: str) -> list[str]:
    """The tags of vtax's root file systems in an engine's store."""
    listed = printed(engine, "images", "--format", "{{.Repository}}:{{.Tag}}", "--filter", "label=vtax.image")
    return [tag for line in listed if "<none>" not in (tag := line.split()[-1].decode())]


@long
def test_an_image_build_leaves_nothing(chaos: Begin, tmp_path: Path) -> None:
    """The programs of a build that was killed end, and what they had written goes."""
    one = chaos("image build, then clean", cache=tmp_path / "cache")
    while one.more(share(0.2), "image build"):
        one.kill("image", "build", within_s=12.0)
        one.clean()
    assert unfinished(one) == []


@long
def test_two_image_builds_at_once(chaos: Begin, tmp_path: Path) -> None:
    """Of one root file system: the second waits. When the first is killed the second builds it, and a third that comes
    meanwhile uses it."""
    one = chaos("two at once: image build", limit_s=1200, cache=tmp_path / "cache")
    first = one.start("image", "build")
    wait_for_build(one, "rootfs.tar")
    second = one.start("image", "build")
    assert one.end(first, one.random.uniform(1.0, 20.0))
    wait_for_build(one, "rootfs.tar")
    assert second.process.poll() is None
    third = one.start("image", "build")
    assert ended(one, second, third) == [0, 0]
    (image,) = build.images(one.places.images)
    assert build.sha256(Path(image.archive)) == image.digest
    assert (Path(image.directory) / "usr/bin/sysbench").exists()
    assert unfinished(one) == []
    one.finish("image", "remove", image.recipe)
    shutil.rmtree(one.cache)


@long
def test_an_image_build_that_is_killed_near_its_end(chaos: Begin, tmp_path: Path) -> None:
    """While the finished archive is unpacked: `vtax clean` removes all of it, or the whole is there."""
    one = chaos("image build, near its end", limit_s=1200, cache=tmp_path / "cache")
    began = one.start("image", "build")
    wait_for_build(one, "rootfs/usr")
    assert one.end(began, one.random.uniform(0.0, 3.0))
    one.clean()
    assert unfinished(one) == []
    shutil.rmtree(one.cache)


def unfinished(one: Chaos) -> list[Path]:
    return list(one.places.images.glob(".building-*"))


def wait_for_build(one: Chaos, name: str) -> None:
    """Until a file of an unfinished root file system is there."""
    deadline = time.monotonic() + 900
    while not list(one.places.images.glob(f".building-*/{name}")):
        assert time.monotonic() < deadline
        time.sleep(0.1)
