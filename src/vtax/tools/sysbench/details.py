"""What sysbench prints besides its main figures: least, mean and most of its latencies, and the percentile. Of logs."""

from __future__ import annotations

from vtax.model.metric import Kind, Metric
from vtax.tools.reading import Reading, Section, Value
from vtax.tools.sysbench.lines import Hit, Run
from vtax.tools.sysbench.metrics import LATENCY_AVG, LATENCY_MAX, LATENCY_MIN, LATENCY_P95
from vtax.tools.sysbench.reader import OFF, run_of, sums_of


def read_log(section: Section) -> Reading:
    """A run in a log of others: what `read` takes, and every latency that it printed with enough digits."""
    run = run_of(section)
    reading = run.reading
    if not reading.values or not reading.ended or reading.benchmark == "sysbench-oltp":  # which takes its own
        return reading
    have = {value.metric.name for value in reading.values}
    wanted = [(LATENCY_MIN, run.found["least"]), (LATENCY_AVG, run.found["mean"]), (LATENCY_MAX, run.found["most"])]
    percents = {hit.groups[0] for hit in run.found["quantile"]}
    if len(percents) == 1:
        wanted.append((_quantile(percents.pop()), run.found["quantile"]))
    if _ordered(run):
        for metric, found in wanted:
            if metric is LATENCY_AVG and reading.ranks == 1:
                _mean(run)
            elif metric.name not in have:
                _add(reading, metric, found)
    return reading


def _mean(run: Run) -> None:
    """The mean of one process from its sum and its events, which have more digits than the printed mean."""
    sums, events, printed = sums_of(run), run.found["events"], run.found["mean"]
    have = any(value.metric.name == LATENCY_AVG.name for value in run.reading.values)
    if have or not len(sums) == len(events) == len(printed) == 1 or sums[0].number <= 0:
        return
    mean_s = sums[0].number / (1 if run.old else 1000) / events[0].number
    if abs(mean_s * 1000 - printed[0].number) <= OFF:
        run.reading.values.append(Value(LATENCY_AVG, mean_s, sums[0].line))


def _quantile(percent: str) -> Metric:
    if percent == "95":
        return LATENCY_P95
    meaning = f"{percent} % of the events took no longer than this"
    return Metric(name=f"latency_p{percent}", unit="s", kind=Kind.LATENCY_QUANTILE, meaning=meaning)


def _ordered(run: Run) -> bool:
    """Whether of every rank the mean is between the least and the most; refused where it is not."""
    columns = [sorted(hit.number for hit in run.found[name]) for name in ("least", "mean", "most")]
    if not all(len(column) == run.reading.ranks for column in columns):
        return False
    if all(low <= mean <= high for low, mean, high in zip(*columns, strict=True)):
        return True
    run.reading.refuse(run.found["mean"][0].line, "latencies", "a mean is not between the least and the most", 0)
    return False


def _add(reading: Reading, metric: Metric, found: list[Hit]) -> None:
    """A value for every rank; none where one is 0.00, which is too short for the digits of sysbench."""
    if len(found) != reading.ranks or any(hit.number <= 0 for hit in found):
        return
    reading.values += [Value(metric, hit.number / 1000, hit.line, {}, of_ranks=True, ordinal=hit.rank) for hit in found]
