"""The lines that pgbench prints, each found by what it says."""

from __future__ import annotations

import re

MS = r"(\d{1,12}\.\d{3}) ms"
SHARE = r"(\d{1,15})(?:/(\d{1,15}))? \((\d{1,3}\.\d{3}) ?%\)"
LINES = {
    name: re.compile(pattern)
    for name, pattern in {
        "version": r"^pgbench \((\d{1,3}[\w.]{1,20})(?: .{0,80})?\)$",
        "type": r"^transaction type: (.{1,300})$",
        "scale": r"^scaling factor: (\d{1,9})$",
        "mode": r"^query mode: (\w{1,20})$",
        "clients": r"^number of clients: (\d{1,9})$",
        "threads": r"^number of threads: (\d{1,9})$",
        "tries": r"^maximum number of tries: (\d{1,9})$",
        "duration": r"^duration: (\d{1,9}) s$",
        "each": r"^number of transactions per client: (\d{1,12})$",
        "processed": r"^number of transactions actually processed: (\d{1,15})(?:/(\d{1,15}))?$",
        "failed": rf"^number of failed transactions: {SHARE}$",
        "retried": rf"^number of transactions retried: {SHARE}$",
        "skipped": rf"^number of transactions skipped: {SHARE}$",
        "serialization": rf"^number of serialization failures: {SHARE}$",
        "deadlock": rf"^number of deadlock failures: {SHARE}$",
        "late": rf"^number of transactions above the (\d{{1,9}}\.\d) ms latency limit: {SHARE}$",
        "latency": rf"^latency average = {MS}( \(including failures\))?$",
        "stddev": rf"^latency stddev = {MS}$",
        "lag": r"^rate limit schedule lag: avg (\d{1,12}\.\d{3}) \(max \d{1,12}\.\d{3}\) ms$",
        "connection": rf"^(?:initial|average) connection time = {MS}$",
        "tps": r"^tps = (\d{1,12}\.\d{6}) \((?:without initial connection time|excluding connections establishing)\)$",
        "tps connecting": r"^tps = (\d{1,12}\.\d{6}) \(including (?:reconnection times|connections establishing)\)$",
    }.items()
}
HEADS = (  # how such lines begin, damaged ones too
    *("pgbench (", "scaling factor:", "query mode:", "duration:", "number of ", "maximum number of "),
    *("latency ", "rate limit schedule lag:", "initial connection time", "average connection time", "tps ="),
)
PROGRESS = re.compile(
    r"^progress: (\d{1,12}\.\d) s, (\d{1,12}\.\d) tps, lat (\d{1,12}\.\d{3}) ms stddev (\d{1,12}\.\d{3})"
)
SCRIPT = re.compile(r"^SQL script (\d{1,4}): (.{1,300})$")
OF_SCRIPT = {
    "weight": re.compile(r"^ - weight: \d{1,9} \(targets (\d{1,3}\.\d)% of total\)$"),
    "tps": re.compile(r"^ - (\d{1,15}) transactions \(\d{1,3}\.\d% of total(?:, tps = (\d{1,12}\.\d{6}))?\)$"),
    "latency": re.compile(rf"^ - latency average = {MS}$"),
    "stddev": re.compile(rf"^ - latency stddev = {MS}$"),
}
STATEMENTS = re.compile(r"^(?: - )?statement latencies in milliseconds.{0,40}:$")
STATEMENT = re.compile(r"^ {1,20}(\d{1,12}\.\d{3})(?: {1,12}\d{1,15}){0,2} {2}(\S.{0,4000})$")
ABORTED = re.compile(r"Run was aborted|^pgbench: (?:error|fatal): |^client \d{1,9} (?:aborted|receiving)")


def starts(line: str) -> bool:
    """Whether a run begins with this line of a log: its version, printed since 15, or its first setting."""
    if line.startswith("pgbench (PostgreSQL)"):  # `pgbench --version`
        return False
    return line.startswith(("pgbench (", "starting vacuum...", "transaction type: "))


def begins(line: str) -> bool:
    """Whether it is the setting that every run prints once, below its version where it has one."""
    return line.startswith("transaction type: ")


def ends(line: str) -> bool:
    """Whether it is the rate that every run prints last, but for details of scripts and statements."""
    return line.startswith("tps = ") and "connections establishing" not in line.partition("(including")[2]
