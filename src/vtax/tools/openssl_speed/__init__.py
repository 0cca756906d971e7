"""openssl-speed: ciphers, hashes and signatures of OpenSSL. It runs as a command."""

from __future__ import annotations

from vtax.evidence.row import Row, rows_of
from vtax.tools.command.workload import Workload
from vtax.tools.openssl_speed.reader import METRICS, read, starts
from vtax.tools.tool import LogFormat, Tool


def _audit() -> tuple[Row, ...]:
    from vtax.tools.openssl_speed import audit

    return rows_of(audit)


TOOL = Tool(
    name="openssl-speed",
    benchmarks=(Workload("openssl-speed", "Compute", METRICS),),
    logs=(LogFormat("openssl-speed", read, starts, first="+"),),
    commands=("openssl",),
    workloads=__name__,
    audit=_audit,
)
