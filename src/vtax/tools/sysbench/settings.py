"""What sysbench says it was asked to do, and what else it says of itself."""

from __future__ import annotations

import re

from pydantic import JsonValue

from vtax.tools.sysbench.lines import Run, bytes_of

MODES = {  # of --file-test-mode: what sysbench then prints, and does
    "seqwr": ("sequential write (creation)", ("write",)),
    "seqrewr": ("sequential rewrite", ("write",)),
    "seqrd": ("sequential read", ("read",)),
    "rndrd": ("random read", ("read",)),
    "rndwr": ("random write", ("write",)),
    "rndrw": ("random r/w", ("read", "write")),
}
KINDS = dict(MODES.values())
LUAJIT = re.compile(r"^sysbench .{0,80}\(using (.{1,80})\)")
OF_CPU = ("CPU speed:", "Doing CPU performance benchmark")
OF_MEMORY = ("Running memory speed test", "Doing memory operations speed test")
SAME = {"threads": "threads", "max_prime": "prime limit", "test": "test", "operation": "operation", "flags": "flags"}


def benchmark_of(run: Run) -> str:
    """The benchmark of vtax that a run is of; "" when no line says which test ran."""
    if run.found["transactions"] or any(test.startswith("OLTP") for test in run.distinct("test")):
        return "sysbench-oltp"
    if any(test in KINDS for test in run.distinct("test")):
        return "sysbench-fileio"
    for line in run.lines:
        if line.text in OF_CPU:
            return "sysbench-cpu"
        if line.text.startswith(OF_MEMORY):
            return "sysbench-memory"
    return "sysbench-cpu" if run.found["max_prime"] else ""


def params_of(run: Run, benchmark: str) -> dict[str, JsonValue]:
    """What decides the work, by the first line that says it; ranks that differ in it are refused."""
    said = {name: hits[0].groups for name, hits in run.found.items() if hits}
    params: dict[str, JsonValue] = {}
    if benchmark == "sysbench-fileio":
        params["test"] = next(test for test in run.distinct("test") if test in KINDS)
    if benchmark == "sysbench-cpu" and "max_prime" in said:
        params["max_prime"] = int(said["max_prime"][0])
    if benchmark != "sysbench-cpu" and "block" in said:
        params["block_bytes"] = bytes_of(*said["block"])
    if benchmark == "sysbench-memory" and "total" in said:
        params["total_bytes"] = bytes_of(*said["total"])
    if benchmark == "sysbench-memory" and "operation" in said:
        params["operation"] = said["operation"][0]
    if benchmark == "sysbench-fileio" and "files" in said:
        params["files"] = "x".join(said["files"])
        if said.get("flags", ("0",))[0] not in ("(none)", "0"):
            params["flags"] = said["flags"][0]
    if "threads" in said:
        params["threads"] = int(said["threads"][0])
    return params


def differing(run: Run) -> str:
    """A setting that ranks of one run have differently; "" when they did the same work."""
    seen = {word: run.distinct(name) for name, word in SAME.items()}
    return next((f"{word} {', '.join(values)}" for word, values in seen.items() if len(values) > 1), "")


def facts_of(run: Run, benchmark: str, params: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Facts for the audit; `settings` holds all that decides the work."""
    facts: dict[str, JsonValue] = {}
    found = run.found
    for name, kind in (("sysbench_version", "banner"), ("io_mode", "io_mode"), ("file_flags", "flags")):
        if values := run.distinct(kind):
            facts[name] = ", ".join(values)
    if lua := dict.fromkeys(match[1] for line in run.lines if (match := LUAJIT.match(line.text))):
        facts["sysbench_lua"] = ", ".join(lua)
    settings = dict(params)
    if "threads" in params:
        facts |= {"threads": params["threads"], "ranks": run.reading.ranks}
    if benchmark == "sysbench-memory" and found["scope"]:
        settings["scope"] = found["scope"][0].groups[0]
    if benchmark == "sysbench-fileio":
        each, end = found["fsync_each"], bool(found["fsync_end"])
        settings |= {
            "flags": facts.get("file_flags", ""),
            "fsync_every": int(each[0].groups[0]) if each else 0,
            "fsync_end": end,
        }
        facts |= {"direct_io": "direct" in str(facts.get("file_flags")), "fsync_timed": bool(each) or end}
        if found["file_total"]:
            facts["file_bytes"] = bytes_of(*found["file_total"][0].groups)
    if settings:
        facts["settings"] = settings
    if found["fairness"]:
        shares = [hit.number / max(1.0, float(hit.groups[0])) for hit in found["fairness"]]
        facts["thread_imbalance"] = round(max(shares), 3)  # 1: one of two threads did everything
    if found["time"]:
        facts["total_time_s"] = max(hit.number for hit in found["time"])
    return facts
