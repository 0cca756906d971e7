"""M08: environments whose ranks are started by different programs."""

from __future__ import annotations

from builders.audit_cases import both, failed, logged, only, passed, unknown
from vtax.audit import launching
from vtax.model.nodes import Scope

MPIRUN = ("mpirun", "--np", "4", "--mca", "btl", "self,sm,tcp", "hpcc")
SRUN = ("sh", "/run/vtax-srun/srun", "--mpi=pmix", "--ntasks=4", "OMPI_MCA_btl=self,sm,tcp", "hpcc")


def test_one_launcher_everywhere() -> None:
    found = passed(
        launching.launcher, logged("hpcc", both(""), scope=Scope.WORKERS, argv={"host": SRUN, "container": SRUN})
    )
    assert [one.rpartition(": ")[2] for one in found] == ["srun", "srun"]


def test_another_launcher_than_the_baseline_is_a_finding() -> None:
    case = logged("hpcc", both(""), scope=Scope.WORKERS, argv={"host": MPIRUN, "container": SRUN})
    found = only(failed(launching.launcher, case))
    assert found.message.endswith("srun in container, mpirun in host")


def test_commands_that_no_launcher_starts_say_nothing() -> None:
    case = logged("hpcc", both(""), scope=Scope.WORKERS, argv={"host": ("hpcc",), "container": ("hpcc",)})
    assert unknown(launching.launcher, case)
