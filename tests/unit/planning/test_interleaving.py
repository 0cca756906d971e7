"""Whether trials can alternate on a machine: memory, hypervisors, and the nodes' shape in each case."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from builders.small import study as small
from vtax.errors import StudyError
from vtax.model.capabilities import Capabilities, NodeKind
from vtax.model.nodes import HostCapacity
from vtax.model.study import Study
from vtax.planning.interleaving import Arrangement, arranged
from vtax.planning.study import parse

GIB, MIB = 2**30, 2**20
KINDS = {
    "host": Capabilities(kind=NodeKind.HOST),
    "docker": Capabilities(kind=NodeKind.CONTAINER),
    "podman": Capabilities(kind=NodeKind.CONTAINER),
    "qemu": Capabilities(kind=NodeKind.VM, own_kernel=True),
    "virtualbox": Capabilities(kind=NodeKind.VM, own_kernel=True, sole_hypervisor=True),
}


def study(memory_bytes: int | None, interleave: str = "trial") -> Study:
    """Three nodes with so much memory each; None: automatic."""
    return small(interleave=interleave).model_copy(update={"memory_bytes": memory_bytes})


def on(gib: float, names: Sequence[str], memory_bytes: int | None = None, interleave: str = "trial") -> Arrangement:
    machine = HostCapacity(cpu_ids=tuple(range(6)), memory_bytes=int(gib * GIB))
    return arranged(study(memory_bytes, interleave), machine, {name: KINDS[name] for name in names})


def each(found: Arrangement) -> int:
    (size,) = {node.memory_bytes for node in found.shape.nodes}
    return size


def test_host_and_containers_need_the_memory_of_one_cluster() -> None:
    found = on(4, ("host", "docker", "podman"), GIB)
    assert (found.interleave, found.refused, found.problems) == ("trial", "", ())


def test_every_environment_of_virtual_machines_is_counted_in_full() -> None:
    assert on(7, ("host", "qemu"), GIB).interleave == "trial"  # 6 of 6.3 GiB
    found = on(6.5, ("host", "qemu"), GIB)
    assert found.interleave == "cell"
    assert found.refused == (
        "trials do not alternate between environments, which are measured one after the other: 2 clusters with 3 GiB "
        "each need 6 GiB of memory at once, and this machine has 6.5 GiB, 90% of it for nodes"
    )


def test_an_environment_that_is_not_in_all_rounds_is_named_where_the_others_would_fit() -> None:
    machine = HostCapacity(cpu_ids=tuple(range(6)), memory_bytes=int(6.5 * GIB))
    kinds = {name: KINDS[name] for name in ("host", "docker", "qemu")}
    found = arranged(study(GIB), machine, kinds, ["qemu"])
    assert found.interleave == "cell"
    assert found.refused.endswith("; without qemu (in fewer rounds), the others would alternate")
    assert "without" not in arranged(study(GIB), machine, kinds).refused
    assert "without" not in arranged(study(3 * GIB), machine, kinds, ["qemu"]).refused, "host and docker do not fit"


def test_paused_containers_keep_a_little() -> None:
    """Three idle nodes of 64 MiB."""
    assert on((3 * GIB + 3 * 64 * MIB) / GIB / 0.9 + 0.001, ("host", "docker"), GIB).interleave == "trial"
    assert on((3 * GIB + 3 * 64 * MIB) / GIB / 0.9 - 0.001, ("host", "docker"), GIB).interleave == "cell"


def test_automatic_memory_is_shared_between_the_clusters_that_keep_theirs() -> None:
    """Of 60 % of 10 GiB: 6 GiB for three nodes alone, half of it where virtual machines are paused next to them."""
    alone, both, three = (on(10, names) for names in (("host", "docker"), ("host", "docker", "qemu"), ("qemu", "host")))
    assert [each(found) for found in (alone, both, three)] == [2 * GIB, GIB, GIB]
    assert {found.interleave for found in (alone, both, three)} == {"trial"}


def test_where_a_share_would_be_too_small_cells_have_the_machine_for_themselves() -> None:
    found = on(1.6, ("host", "qemu"))
    assert found.interleave == "cell"
    assert found.shape == on(1.6, ("host", "qemu"), interleave="cell").shape


def test_two_hypervisors_that_exclude_each_other() -> None:
    found = on(64, ("host", "qemu", "virtualbox"), GIB)
    assert found.interleave == "cell"
    assert "machines of virtualbox and qemu cannot exist at the same time" in found.refused
    assert on(64, ("host", "docker", "virtualbox"), GIB).interleave == "trial"


def test_whole_cells_where_the_study_wants_them_or_nothing_can_alternate() -> None:
    for found in (on(64, ("host", "qemu"), interleave="cell"), on(64, ("host",))):
        assert (found.interleave, found.refused) == ("cell", "")


# --- the study file ------------------------------------------------------------------------------------------------

TEXT = """
name = "t"
baseline = "host"
{top}
[environments.host]
provider = "host"
[[benchmarks]]
name = "sysbench-cpu"
iterations = {iterations}
"""


def test_trials_alternate_unless_the_study_says_otherwise() -> None:
    assert parse(TEXT.format(top="", iterations=2), "t").interleave == "trial"
    assert parse(TEXT.format(top='interleave = "cell"', iterations=3), "t").interleave == "cell"


@pytest.mark.parametrize("iterations", [1, 2, 8])
def test_numbers_of_iterations_that_can_be_paired(iterations: int) -> None:
    assert parse(TEXT.format(top='interleave = "trial"', iterations=iterations), "t").interleave == "trial"


@pytest.mark.parametrize("top", ["", 'interleave = "trial"'])
def test_an_odd_number_of_iterations_is_a_mistake_where_trials_alternate(top: str) -> None:
    text = TEXT.format(top=top, iterations=3)
    with pytest.raises(StudyError, match=r"benchmarks\.sysbench-cpu\.iterations: 3 is odd"):
        parse(f"control = true\n{text}", "t")
    assert parse(text, "t").benchmarks[0].iterations == 3  # one environment alone
