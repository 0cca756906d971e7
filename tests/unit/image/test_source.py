"""Which image a source names: found by reading manifests, before anything is unpacked."""

from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
from pathlib import Path

import pytest

from builders.oci import HERE, Layout, configuration, docker_archive, layer, sha256
from vtax.errors import UsageError
from vtax.image.workload import cache
from vtax.image.workload.source import Identity, identify
from vtax.model.study import WorkloadSpec

LAYER = layer([])
ONE = configuration([LAYER], Cmd=["one"])
TWO = configuration([LAYER], Cmd=["two"])
FOREIGN = configuration([LAYER], architecture="s390x")


def found(source: str, base: Path) -> Identity:
    return identify(WorkloadSpec(source=source, base=str(base)))


def refusal(source: str, base: Path) -> str:
    with pytest.raises(UsageError) as raised:
        found(source, base)
    return str(raised.value)


def test_the_only_image_of_a_docker_archive(tmp_path: Path) -> None:
    docker_archive(tmp_path / "app.tar", {"app:1": (ONE, [LAYER])})
    image = found("docker-archive:app.tar", tmp_path)
    assert image.digest == sha256(ONE)
    assert image.argument == f"docker-archive:{tmp_path}/app.tar"
    assert image.configuration.entry == ("one",)


def test_a_packed_docker_archive(tmp_path: Path) -> None:
    plain = docker_archive(tmp_path / "app.tar", {"app:1": (ONE, [LAYER])})
    (tmp_path / "app.tar.gz").write_bytes(gzip.compress(plain.read_bytes()))
    assert found("docker-archive:app.tar.gz", tmp_path).digest == sha256(ONE)


def long_header(path: Path, size: int) -> Path:
    """An archive that begins with a name that claims to be so long."""
    about = tarfile.TarInfo("name")
    about.type, about.size = tarfile.GNUTYPE_LONGNAME, size
    path.write_bytes(about.tobuf(tarfile.GNU_FORMAT) + b"x" * 512)
    os.truncate(path, size)
    return path


def test_an_archive_of_zeros_is_none(tmp_path: Path) -> None:
    """20 GB that take no space: what looks for a compressed file in it would not end."""
    (tmp_path / "zeros.tar").touch()
    os.truncate(tmp_path / "zeros.tar", 20 * 2**30)
    assert "it has no manifest.json" in refusal("docker-archive:zeros.tar", tmp_path)


def test_an_archive_that_claims_gigabytes_is_not_read(tmp_path: Path) -> None:
    long_header(tmp_path / "long.tar", 20 * 2**30)
    assert "a header is larger than any that is needed" in refusal("docker-archive:long.tar", tmp_path)


def test_an_archive_that_is_much_larger_unpacked_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A member that is passed over is unpacked all the same."""
    monkeypatch.setattr("vtax.image.workload.source.FREE_BYTES", 2**20)
    with tarfile.open(tmp_path / "bomb.tar.gz", "w:gz") as archive:
        about = tarfile.TarInfo("layer.tar")
        about.size = 2**27
        archive.addfile(about, io.BytesIO(bytes(2**27)))
    assert "more than 100 times as large when unpacked" in refusal("docker-archive:bomb.tar.gz", tmp_path)


def test_one_of_several_images_by_its_tag(tmp_path: Path) -> None:
    docker_archive(tmp_path / "all.tar", {"app:1": (ONE, [LAYER]), "registry:5000/team/app:latest": (TWO, [LAYER])})
    assert found("docker-archive:all.tar:app:1", tmp_path).digest == sha256(ONE)
    assert found("docker-archive:all.tar:registry:5000/team/app", tmp_path).digest == sha256(TWO)
    assert refusal("docker-archive:all.tar", tmp_path).startswith(
        "docker-archive:all.tar contains 2 images: app:1 and registry:5000/team/app:latest\n"
    )
    assert "no image app:2 in it, only app:1 and" in refusal("docker-archive:all.tar:app:2", tmp_path)


def test_images_of_an_oci_layout(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "app")
    layout.add(layout.image(ONE, [LAYER]), "one")
    assert found("oci:app", tmp_path).digest == sha256(ONE)
    layout.add(layout.image(TWO, [LAYER]), "two")
    assert found("oci:app:two", tmp_path).digest == sha256(TWO)
    assert found("oci:app:two", tmp_path).argument == f"oci:{tmp_path}/app:two"
    assert "oci:app contains 2 images: one and two" in refusal("oci:app", tmp_path)
    with tarfile.open(tmp_path / "app.tar", "w") as archive:
        archive.add(tmp_path / "app", ".")
    assert found("oci-archive:app.tar:one", tmp_path).digest == sha256(ONE)


def test_of_an_image_for_several_machines_the_one_for_this(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "app")
    both = {"s390x": layout.image(FOREIGN, [LAYER]), HERE: layout.image(ONE, [LAYER])}
    layout.add(layout.index(both), "all")
    assert found("oci:app", tmp_path).digest == sha256(ONE)
    other = Layout(tmp_path / "other")
    other.add(other.index({"s390x": other.image(FOREIGN, [LAYER])}), "all")
    assert f"oci:other is an image for linux/s390x; this machine needs linux/{HERE}" in refusal("oci:other", tmp_path)


def test_an_image_for_another_machine(tmp_path: Path) -> None:
    docker_archive(tmp_path / "app.tar", {"app:1": (FOREIGN, [LAYER])})
    assert "is an image for linux/s390x; this machine needs" in refusal("docker-archive:app.tar", tmp_path)


@pytest.mark.parametrize("source", ["docker-archive:app.tar", "oci-archive:app.tar", "oci:app.tar"])
def test_what_does_not_exist(source: str, tmp_path: Path) -> None:
    assert refusal(source, tmp_path).splitlines()[0] == f"[image.workload]: {tmp_path}/app.tar does not exist"


def test_what_is_not_a_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert "docker-archive:pipe cannot be read as an image: it is not a regular file" in refusal(
        "docker-archive:pipe", tmp_path
    )
    (tmp_path / "folder").mkdir()
    assert "it is a directory, not an archive" in refusal("oci-archive:folder", tmp_path)
    assert "oci:folder cannot be read as an image: there is no index.json in it" in refusal("oci:folder", tmp_path)


def test_what_is_not_an_archive_is_told_on_one_line(tmp_path: Path) -> None:
    (tmp_path / "app.tar").write_text("this is a text\n" * 100)
    first, *rest = refusal("docker-archive:app.tar", tmp_path).splitlines()
    assert first.endswith("it is not an archive by tar, packed by gzip, bzip2, xz or nothing")
    assert not [line for line in rest if "method" in line]


def test_a_truncated_archive(tmp_path: Path) -> None:
    whole = docker_archive(tmp_path / "app.tar", {"app:1": (ONE, [LAYER])}).read_bytes()
    for length in (0, 1, 700, 1500):
        (tmp_path / "app.tar").write_bytes(whole[:length])
        assert "docker-archive:app.tar cannot be read as an image: " in refusal("docker-archive:app.tar", tmp_path)


@pytest.mark.parametrize(
    ("manifest", "reason"),
    [
        ("[]", "contains no image"),
        ("{", "cannot be read as an image"),
        ('[{"RepoTags": ["a"]}]', "there is no 'Config'"),
        ('[{"Config": "gone.json"}]', "there is no 'gone.json'"),
        ('{"a": 1}', "cannot be read as an image"),
        ("[" * 100_000, "cannot be read as an image"),
    ],
)
def test_damaged_manifests(manifest: str, reason: str, tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_text(manifest)
    with tarfile.open(tmp_path / "app.tar", "w") as archive:
        archive.add(tmp_path / "manifest.json", "manifest.json")
    assert reason in refusal("docker-archive:app.tar", tmp_path)


def test_a_changed_file_of_an_oci_layout(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "app")
    layout.add(layout.image(ONE, [LAYER]))
    (tmp_path / "app/blobs/sha256" / sha256(ONE)).write_bytes(TWO)
    assert "has another digest" in refusal("oci:app", tmp_path)


def test_a_digest_that_is_a_path(tmp_path: Path) -> None:
    layout = Layout(tmp_path / "app")
    layout.add({"mediaType": "x", "digest": "sha256:../../../etc/passwd", "size": 1})
    assert "is not a digest by sha256" in refusal("oci:app", tmp_path)


def test_a_looked_up_image_has_its_digest_and_a_tag_of_a_registry_stays_one(tmp_path: Path) -> None:
    docker_archive(tmp_path / "app.tar", {"app:1": (ONE, [LAYER])})
    local = WorkloadSpec(source="docker-archive:app.tar", base=str(tmp_path))
    assert cache.looked_up(tmp_path, local).digest == sha256(ONE)
    tag = WorkloadSpec(source="docker://localhost:5000/app:1")
    assert cache.looked_up(tmp_path, tag) == tag


def test_what_is_in_the_cache_is_found_by_digest_alone(tmp_path: Path) -> None:
    place = tmp_path / sha256(ONE)
    place.mkdir()
    pinned = f"docker://localhost:5000/app@sha256:{'0' * 64}"
    known = {"source": pinned, "digest": sha256(ONE), "directory": str(place), "libc": "none", "size_bytes": 1}
    (place / "workload.json").write_text(json.dumps({**known, "architecture": HERE}))
    spec = cache.frozen(tmp_path, WorkloadSpec(source=pinned))
    assert spec.digest == sha256(ONE)
    own = cache.cached(tmp_path, WorkloadSpec(source="docker-archive:copy.tar", digest=sha256(ONE)))
    assert own is not None
    assert (own.source, own.directory) == ("docker-archive:copy.tar", str(place))
