"""`vtax clean --images`: root file systems here and in registries, unless somebody uses them."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path

import pytest

from builders.small import IMAGE
from vtax.errors import EnvironmentMissing, ImageError, UsageError
from vtax.paths import Paths
from vtax.planning.study import parse
from vtax.running import kept, lease
from vtax.running.machine_states import clean_machines

STUDY = """\
name = "pods"
baseline = "pods"
[environments.pods]
provider = "kubernetes"
nodes = { master = "n1", worker1 = "n2" }
registry = "registry:5000"
[environments.hostnet]
provider = "kubernetes"
network = "host"
nodes = { master = "n1", worker1 = "n2" }
registry = "registry:5000"
[nodes]
workers = 1
[[benchmarks]]
name = "sysbench-cpu"
"""
SKOPEO = """\
#!/bin/sh
echo "$*" >>{place}/calls
case "$1" in
inspect) [ -e {place}/there ] || {{ cat {place}/says >&2; exit 1; }};;
delete) [ ! -e {place}/refuses ] || {{ echo "405 Method Not Allowed" >&2; exit 1; }}; rm {place}/there;;
esac
"""


@pytest.fixture
def paths(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Paths:
    """A cache with one root file system, and a part of another that was sent."""
    monkeypatch.setattr(lease.hold, "__defaults__", ((tmp_path / "locks",),))
    (tmp_path / "locks").mkdir()
    made = Paths(cache=tmp_path / "cache", state=tmp_path / "state")
    (made.images / IMAGE.recipe).mkdir(parents=True)
    (made.images / IMAGE.recipe / "image.json").write_text(IMAGE.model_dump_json())
    (made.images / "incoming").mkdir()
    (made.images / "incoming/0123-rootfs.tar.gz.part").write_text("half")
    return made


def test_all_of_it_is_found_and_removed(paths: Paths) -> None:
    found = kept.here(paths)
    assert [one.kind for one in found] == [kept.ROOT, kept.INCOMING]
    kept.remove(found, paths, everything=False)
    assert kept.here(paths) == []
    assert not (paths.images / IMAGE.recipe).exists()


def test_nothing_goes_while_a_campaign_uses_it_unless_all_is_said(paths: Paths) -> None:
    with ExitStack() as other:
        lease.hold(other, "campaign X of ann", 0)
        with pytest.raises(EnvironmentMissing, match="campaign X of ann"):
            kept.remove(kept.here(paths), paths, everything=False)
        assert len(kept.here(paths)) == 2
        kept.remove(kept.here(paths), paths, everything=True)
    assert kept.here(paths) == []


def test_nothing_goes_while_a_cluster_is_up(paths: Paths) -> None:
    place = paths.state / "clusters"
    place.mkdir(parents=True)
    (place / "mine.json").write_text(json.dumps({"campaign": "0123abcd"}))
    with pytest.raises(UsageError, match="clusters that are up") as caught:
        kept.remove(kept.here(paths), paths, everything=False)
    assert "vtax down" in caught.value.remedy
    assert len(kept.here(paths)) == 2


@pytest.fixture
def registry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `skopeo` of a registry that has what is in the file "there"."""
    place = tmp_path / "registry"
    place.mkdir()
    (place / "skopeo").write_text(SKOPEO.format(place=place))
    (place / "skopeo").chmod(0o755)
    (place / "kubectl").write_text("#!/bin/sh\necho '{\"items\": []}'\n")
    (place / "kubectl").chmod(0o755)
    (place / "there").touch()
    (place / "says").write_text("reading manifest 0123 in registry:5000/vtax-rootfs: manifest unknown\n")
    monkeypatch.setenv("PATH", str(place), prepend=":")
    return place


def test_what_was_pushed_is_removed_from_the_registry_once(paths: Paths, registry: Path) -> None:
    study, name = parse(STUDY, "study.toml"), f"registry:5000/vtax-rootfs:{IMAGE.digest[:12]}"
    assert [one.name for one in kept.published(study, paths)] == [name]
    listed = clean_machines(study, paths, check=True, everything=False, images=True)[-1]
    assert [one[2] for one in listed.found] == [name] and not listed.removed
    (registry / "refuses").touch()
    refused = clean_machines(study, paths, check=False, everything=False, images=True)[-1]
    assert "cannot be removed from its registry" in refused.reason
    (registry / "refuses").unlink()
    assert clean_machines(study, paths, check=False, everything=False, images=True)[-1].removed == 1
    assert kept.published(study, paths) == []
    assert (registry / "calls").read_text().count(f"delete docker://{name}") == 2
    assert kept.here(paths)  # this machine's own stay


def test_a_registry_that_does_not_answer_is_not_taken_for_an_empty_one(paths: Paths, registry: Path) -> None:
    (registry / "there").unlink()
    (registry / "says").write_text("pinging container registry registry:5000: connect: connection refused\n")
    cleaned = clean_machines(parse(STUDY, "study.toml"), paths, check=True, everything=False, images=True)[-1]
    assert "the registry does not say whether it has registry:5000/vtax-rootfs" in cleaned.reason
    assert "connection refused" in cleaned.reason


def test_without_skopeo_that_is_said(paths: Paths, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vtax.providers.kubernetes.images.process.installed", lambda name: False)
    with pytest.raises(ImageError, match="skopeo is not installed"):
        kept.published(parse(STUDY, "study.toml"), paths)
