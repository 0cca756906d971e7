"""Planning, image build and the host environment for a user who is not root: in user namespaces, nothing mounted."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import pwd
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cyclonedx.schema import OutputFormat, SchemaVersion
from cyclonedx.validation import make_schemabased_validator

from vtax.events import ignore
from vtax.image import build
from vtax.model.study import ImageSpec
from vtax.paths import Paths
from vtax.planning import preparation
from vtax.store import Campaign

from .conftest import CPU, PING, study

pytestmark = [pytest.mark.integration, pytest.mark.slow, pytest.mark.long]  # another image, built without root
NAME = "vtax-test-user"
SOURCE = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def home() -> Iterator[Path]:
    """A user of our own with subordinate ids, removed afterwards."""
    if NAME not in [entry.pw_name for entry in pwd.getpwall()]:
        subprocess.run(["useradd", "--create-home", "--shell", "/bin/sh", NAME], check=True)
    place = Path(pwd.getpwnam(NAME).pw_dir)
    package = place / "vtax"
    shutil.copytree(SOURCE / "src", package / "src", dirs_exist_ok=True)
    subprocess.run(["chown", "-R", f"{NAME}:", str(place)], check=True)
    yield place
    for status in Path("/proc").glob("[0-9]*"):  # rootless Podman leaves a process that holds its namespaces
        with contextlib.suppress(OSError):
            if status.stat().st_uid == pwd.getpwnam(NAME).pw_uid:
                os.kill(int(status.name), signal.SIGKILL)
    time.sleep(0.5)
    subprocess.run(["userdel", "--remove", NAME], check=True, capture_output=True)


def as_user(home: Path, *words: str, timeout_s: float = 600) -> subprocess.CompletedProcess[str]:
    """Run vtax as that user, from a copy of the source that it may read, with this interpreter's libraries."""
    libraries = [path for path in sys.path if "site-packages" in path]
    readable = home / "vtax" / "libraries"
    if not readable.exists():
        for library in libraries:
            shutil.copytree(library, readable, dirs_exist_ok=True)
        subprocess.run(["chmod", "-R", "a+rX", str(readable)], check=True)
    python = home / "vtax" / "python"
    if not python.exists():
        shutil.copytree(sys.base_prefix, python, symlinks=True, ignore=shutil.ignore_patterns("site-packages", "test"))
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return subprocess.run(
        [
            *("setpriv", "--reuid", NAME, "--regid", NAME, "--init-groups", "--reset-env", "env"),
            *(f"PYTHONPATH={home}/vtax/src:{readable}", f"PYTHONHOME={python}", f"HOME={home}"),
            *(str(python / "bin" / version), "-m", "vtax", *words),
        ],
        cwd=home,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )


@pytest.fixture
def large(tmp_path: Path) -> Iterator[Path]:
    """A directory for some gigabytes, which pytest would keep."""
    place = tmp_path / "a-path-of-another-length"
    yield place
    shutil.rmtree(place)


def test_a_snapshot_is_the_same_file_whoever_builds_it(home: Path, large: Path) -> None:
    """Root, and a user with another umask, another directory and another environment: the same, byte for byte.

    The mirror of this machine stands for an archive of snapshots: what it has now is what it had a minute ago.
    """
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(time.time() - 60))
    mirror = build.find_machine_mirror()
    image = f'[image]\nsnapshot = "{stamp}"\nmirror = "{mirror}"\n'
    (home / "snapshot.toml").write_text(study(["host"], PING) + image)
    before = os.umask(0o077)
    try:
        spec = ImageSpec(snapshot=stamp, mirror=mirror)
        made = preparation.base_image(spec, Paths(large, large), ignore)
    finally:
        os.umask(before)
    built = as_user(home, "image", "build", "snapshot.toml")
    assert built.returncode == 0, built.stderr
    key, _, digest, directory = built.stdout.split()[:4]
    assert key == made.recipe
    theirs = Path(directory).with_name("rootfs.tar")
    assert differing(Path(made.archive), theirs) == []
    assert digest == made.digest
    etc = Path(made.directory) / "etc"
    assert ((etc / "hostname").read_text(), (etc / "resolv.conf").read_text()) == ("localhost\n", "")
    bill = as_user(home, "image", "sbom", "snapshot.toml")
    assert bill.returncode == 0, bill.stderr
    assert make_schemabased_validator(OutputFormat.JSON, SchemaVersion.V1_6).validate_str(bill.stdout) is None
    bom = json.loads(bill.stdout)
    assert bom["metadata"]["component"]["version"] == f"sha256:{digest}"
    named = {one["name"]: one["version"] for one in bom["components"]}
    assert made.versions.items() <= named.items()
    assert named["/usr/local/bin/vtax-enter"] == f"sha256:{made.enter_digest}"


def differing(one: Path, other: Path) -> list[str]:
    """Members of two archives that are not the same, so that a failure says which."""

    def members(path: Path) -> dict[str, tuple[object, ...]]:
        with tarfile.open(path) as archive:
            return {member.name: (*member.get_info().values(), content(archive, member)) for member in archive}

    def content(archive: tarfile.TarFile, member: tarfile.TarInfo) -> str:
        stream = archive.extractfile(member) if member.isreg() else None
        return hashlib.sha256(stream.read()).hexdigest() if stream else ""

    first, second = members(one), members(other)
    return sorted(name for name in first | second if first.get(name) != second.get(name))


def test_a_bridge_is_refused_before_anything_is_made(home: Path) -> None:
    text = study(["host"], PING).replace('provider = "host"\n', 'provider = "host"\nnetwork = "bridge"\n')
    (home / "bridge.toml").write_text(text)
    refused = as_user(home, "run", "bridge.toml", "-o", "bridged")
    assert refused.returncode == 3, refused.stdout + refused.stderr
    assert 'network = "bridge" needs root, to make a bridge' in refused.stderr
    assert 'or network = "none"' in refused.stderr
    assert not (home / "bridged").exists()


def test_the_image_and_the_host_environment_work_without_root(home: Path) -> None:
    mounts = Path("/proc/mounts").read_text()
    (home / "study.toml").write_text(study(["host"], CPU.format(seconds=1)))
    (home / "study.toml").chmod(0o644)
    planned = as_user(home, "plan", "study.toml")
    assert planned.returncode == 0, planned.stderr
    doctor = as_user(home, "doctor")
    assert "host: works" in doctor.stdout, doctor.stdout + doctor.stderr
    assert "without root it pins CPUs, but cannot limit memory" in doctor.stdout, doctor.stdout
    built = as_user(home, "image", "build")
    assert built.returncode == 0, built.stderr
    ran = as_user(home, "run", "study.toml", "-o", "c")
    assert ran.returncode == 0, ran.stderr
    campaign = Campaign.open(home / "c")
    assert [trial.status for trial in campaign.trials(texts=False)] == ["ok"]
    facts = {one.node: one.values for one in campaign.cells()[0].facts}
    assert facts["worker2"]["cpus_allowed"] == "1"
    assert "memory_limit_bytes" not in facts["worker2"]
    page = (home / "c" / "report" / "index.html").read_text()
    assert "memory" in page and "C01" in page, "a limit that is not there is a finding"
    assert Path("/proc/mounts").read_text() == mounts, "nothing stays mounted"
    up = as_user(home, "up", "qemu")
    assert up.returncode == 0, up.stderr
    assert "/shared is the same on all 3 nodes" in up.stdout
    owners = as_user(home, "exec", "qemu", "worker1", "--", "stat", "-c", "%u %g %a", "/etc/shadow", "/usr/bin/passwd")
    assert owners.stdout.split("\n")[:2] == ["0 42 640", "0 0 4755"], "the disk is as root would have made it"
    assert as_user(home, "down").returncode == 0
    key = as_user(home, "image", "list").stdout.splitlines()[1].split()[0]
    removed = as_user(home, "image", "remove", key)
    assert removed.returncode == 0, removed.stderr
    assert not list((home / ".cache" / "vtax" / "images").glob("*/rootfs"))
