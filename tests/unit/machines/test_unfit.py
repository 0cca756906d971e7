"""Machines that vtax cannot use: one sentence for each, with what there is and what is needed.

This machine cannot be any of them, so what a machine says of itself is written here.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from vtax.errors import EnvironmentMissing, UsageError
from vtax.machines import parcel
from vtax.machines.agent import FREE_BYTES, Agent
from vtax.machines.ssh import Ssh
from vtax.model.study import MachineSpec
from vtax.planning.on_machines import refuse_one_machine_twice, refuse_wrong_clock

FIT = {
    "system": "Linux",
    "architecture": parcel.ARCHITECTURE,
    "python": parcel.PYTHON,
    "kernel": "5.3.0-42-generic",
    "free": str(FREE_BYTES),
    "directory": "/srv",
}


def agent() -> Agent:
    return Agent(Ssh("b", MachineSpec(ssh="lab@node18"), Path("/s")))


def test_a_machine_like_this_one_is_used() -> None:
    agent()._refuse_unfit(FIT)


@pytest.mark.parametrize(
    ("other", "why", "remedy"),
    [
        ({"system": "Darwin"}, "runs Darwin", "use a machine with Linux"),
        ({"architecture": "riscv64"}, "is of architecture riscv64, and this one of ", "of the same architecture"),
        ({"python": ""}, "has no python3, and vtax runs under Python ", "install Python "),
        ({"python": "3.4"}, "has Python 3.4, and vtax runs under Python ", "install Python "),
        ({"kernel": "4.19.0-26-amd64"}, "has Linux 4.19.0-26-amd64", "use a system with Linux 5.3 or later"),
        ({"kernel": ""}, "has Linux ", "use a system with Linux 5.3 or later"),
        ({"free": str(3 * 2**20)}, "has 3 MiB free in /srv", "free 256 MiB there, or set `directory`"),
    ],
)
def test_what_does_not_fit_is_named(other: dict[str, str], why: str, remedy: str) -> None:
    with pytest.raises(EnvironmentMissing) as raised:
        agent()._refuse_unfit({**FIT, **other})
    assert raised.value.exit_code == 3
    assert raised.value.message.startswith(f"machine b (lab@node18) {why}")
    assert remedy in raised.value.remedy


@pytest.mark.parametrize(("offset_s", "way"), [(600.4, "600 s ahead of"), (-600.4, "600 s behind")])
def test_a_clock_ten_minutes_off_is_refused(offset_s: float, way: str) -> None:
    one = agent()
    one.offset_s = offset_s
    with pytest.raises(EnvironmentMissing, match=f"the clock of machine b \\(lab@node18\\) is {way} this machine's"):
        refuse_wrong_clock(one)


def test_a_clock_a_little_off_is_no_obstacle() -> None:
    one = agent()
    one.offset_s = -59.0
    refuse_wrong_clock(one)


def test_one_machine_under_two_names_is_refused() -> None:
    known = {"machine_id": "1", "boot_id": "x"}
    with pytest.raises(UsageError, match="machines a and c are the same machine"):
        refuse_one_machine_twice({"a": known, "b": {"machine_id": "2", "boot_id": "x"}, "c": known})
    refuse_one_machine_twice({"a": {"boot_id": "x"}, "b": {"boot_id": "x"}})  # not known: then nothing is claimed
