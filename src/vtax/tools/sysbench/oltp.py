"""sysbench's OLTP tests: transactions of a database by one process with several threads."""

from __future__ import annotations

from vtax.model.reading import TimeSeries
from vtax.tools.reading import Value
from vtax.tools.sysbench.lines import Hit, Run
from vtax.tools.sysbench.metrics import (
    FAILED,
    LATENCY_AVG,
    LATENCY_MAX,
    LATENCY_MIN,
    LATENCY_P95,
    LATENCY_P99,
    QUERIES_RATE,
    TRANSACTIONS_RATE,
)

QUANTILES = {"95": LATENCY_P95, "99": LATENCY_P99}
ONCE = (
    "transactions",
    "queries",
    "failed",
    "sql reads",
    "sql writes",
    "sql others",
    "time",
    "mean",
    "quantile",
    "least",
    "most",
)
APART_S = 0.05  # by which the two times of sysbench 1.x may differ


def read_oltp(run: Run) -> None:
    """Rates, latencies and failures. A run by several processes is refused: whose numbers they are is not known."""
    reading, found = run.reading, run.found
    if reading.ranks != 1 or any(len(found[name]) != 1 for name in ONCE):
        wrong = next((name for name in ONCE if len(found[name]) != 1), "banner")
        run.refuse("all values of this run", f"{len(found[wrong])} lines with its {wrong}, and not one", 0)
        return
    committed, took_s = int(found["transactions"][0].groups[0]), found["time"][0].number
    if not _counted(run) or not _fits(found["transactions"][0], took_s) or not _fits(found["queries"][0], took_s):
        run.refuse("all values of this run", "its numbers, its time and its rates do not fit", 0)
        return
    labels = {"test": test_of(run, committed)}
    reading.params |= labels
    run.take(TRANSACTIONS_RATE, found["transactions"], "rate of transactions", labels=labels)
    run.take(QUERIES_RATE, found["queries"], "rate of queries", labels=labels)
    run.take(LATENCY_AVG, found["mean"], "mean latency", per=1000, labels=labels)
    run.take(LATENCY_MIN, found["least"], "shortest latency", per=1000, labels=labels)
    run.take(LATENCY_MAX, found["most"], "longest latency", per=1000, labels=labels)
    quantile = found["quantile"][0]
    if quantile.groups[0] in QUANTILES:
        run.take(QUANTILES[quantile.groups[0]], [quantile], "quantile", per=1000, labels=labels)
    failed = found["failed"][0]
    share = int(failed.groups[0]) / (committed + int(failed.groups[0]))
    reading.values.append(Value(FAILED, share, failed.line, labels))
    reading.facts |= {"operations": committed, "failed_operations": int(failed.groups[0])}
    threads = reading.params.get("threads")
    reading.facts["client_threads"] = threads or 1
    if isinstance(threads, int) and threads:  # those that commit at one moment share a flush
        reading.facts["least_flushes"] = committed // threads if int(found["sql writes"][0].groups[0]) else 0
    rows = tuple(tuple(map(float, (hit.groups[0], hit.groups[1], hit.groups[4]))) for hit in found["report"])
    if rows:
        reading.series["progress"] = TimeSeries(
            columns=("end_s", "tps", "latency_s"), rows=tuple((end, tps, ms / 1000) for end, tps, ms in rows)
        )


def test_of(run: Run, committed: int) -> str:
    """What the transactions did: sysbench 1.x does not name its script, but counts what it did."""
    reads, writes, others = (int(run.found[name][0].groups[0]) for name in ("sql reads", "sql writes", "sql others"))
    if writes:
        return "read-write" if reads else "write-only"
    return "point-select" if others == 0 and reads == committed else "read-only"


def _counted(run: Run) -> bool:
    """Whether every transaction is an event, and the queries are those of each kind together."""
    reads, writes, others = (int(run.found[name][0].groups[0]) for name in ("sql reads", "sql writes", "sql others"))
    total = reads + writes + (0 if run.old else others)
    transactions, queries = (run.found[name][0].groups[0] for name in ("transactions", "queries"))
    return transactions == run.found["events"][0].groups[0] and int(queries) == total


def _fits(hit: Hit, took_s: float) -> bool:
    """Whether a number and its rate are of the same time. sysbench 1.x takes the rate over a time of its own, which is
    some milliseconds shorter or longer than what it prints."""
    number, rate = int(hit.groups[0]), hit.number
    return abs(number / rate - took_s) < APART_S if rate else number == 0
