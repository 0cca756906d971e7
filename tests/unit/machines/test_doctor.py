"""What `vtax doctor --machines` says of a machine that may have to serve or mount the shared directory."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from builders.small import FACTS
from vtax.cli.doctor import machine_lines
from vtax.running.doctor import Diagnosis
from vtax.running.machine_states import MachineState

FOUND = Diagnosis(
    host={**FACTS, "cpus_usable": [0, 1], "memory_total_bytes": 2**30},
    programs={},
    providers=(),
    image_reason="",
    image_cached="",
    blas_core="",
    left_behind=0,
    notes=(),
)


@pytest.mark.parametrize(
    ("nfs", "said"),
    [
        (None, []),  # nothing in the study needs it
        ({}, ["  /shared by NFS: can serve and mount"]),
        (
            {"serve": "port 2049 is taken by another program", "mount": "its kernel has no module nfsv4"},
            [
                "  /shared by NFS: cannot serve: port 2049 is taken by another program",
                "  /shared by NFS: cannot mount: its kernel has no module nfsv4",
            ],
        ),
    ],
)
def test_doctor_says_what_nfs_lacks(nfs: Mapping[str, str] | None, said: list[str]) -> None:
    state = MachineState(name="a", ssh="lab@a", works=True, clock_offset_s=0.0, nfs=nfs, found=FOUND)
    assert machine_lines(state)[1:] == said
