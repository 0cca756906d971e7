"""What a log does not say and its importer states, and runs under two conditions, which are never averaged."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from builders.logs import LOGS, SYSBENCH, faster, imported, put, text_of
from vtax import pipeline
from vtax.analysis.estimate.diagnostics import two_modes
from vtax.analysis.records import Verdict
from vtax.audit.groups import ALPHA, critical, split_at
from vtax.errors import UsageError
from vtax.importing.campaign import import_logs
from vtax.importing.layout import labels_given, units_given
from vtax.importing.request import Request
from vtax.model.finding import Finding, Severity
from vtax.model.measurement import Measurement
from vtax.store import Campaign

ROWS = """\
          1024       4   100    200    300    400    500    600    700    800    900    1000     1100     1200     1300
          1024       8   150    250    350    450    550    650    750    850    950    1050     1150     1250     1350
"""  # written by hand: two rows as iozone prints them, without anything above


def measurements(tmp_path: Path) -> tuple[Measurement, ...]:
    return pipeline.measurements(tmp_path / "campaign")[0]


def groups(tmp_path: Path) -> list[Finding]:
    return [one for one in pipeline.analyse(tmp_path / "campaign").findings if one.id == "R11"]


# --- what is stated -------------------------------------------------------------------------------------------------


def test_a_layout_turns_names_into_labels(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {f"vm/{node}_{how}.txt": faster(SYSBENCH, f"{rate}.50") for node, how, rate in [
        ("n1", "idle", 900), ("n2", "idle", 910), ("n1", "loaded", 400), ("n2", "loaded", 410)]}  # fmt: skip
    imported(tmp_path, files, environment="", layout="{environment}/{node}_{condition}.txt")
    rates = {
        (one.environment, one.labels["node"], one.labels["condition"]): one.value
        for one in measurements(tmp_path)
        if one.metric == "events_rate"
    }
    assert rates == {
        ("vm", "n1", "idle"): 900.5,
        ("vm", "n2", "idle"): 910.5,
        ("vm", "n1", "loaded"): 400.5,
        ("vm", "n2", "loaded"): 410.5,
    }
    assert groups(tmp_path) == []  # conditions that are labels are not averaged
    plan = Campaign.open(tmp_path / "campaign").plan()
    assert plan.study.rounds == 1  # four runs of different work, none of which repeats another


def test_labels_that_are_stated_are_recorded_and_survive_reading_again(tmp_path: Path) -> None:
    imported(tmp_path, {"a.txt": SYSBENCH}, labels={"condition": "idle"})
    imported(tmp_path / "again", {"b.txt": faster(SYSBENCH, "500.00")}, labels={"condition": "loaded"})
    (trial,) = Campaign.open(tmp_path / "campaign").trials(texts=False)
    assert trial.imported is not None
    assert trial.imported.labels == {"condition": "idle"}
    assert {one.labels["condition"] for one in measurements(tmp_path)} == {"idle"}
    (table,) = json.loads((tmp_path / "campaign" / "imports.json").read_text())
    assert table["files"][0]["runs"][0]["stated"] == {"condition": "idle"}


def test_runs_of_two_stated_conditions_do_not_repeat_each_other(tmp_path: Path) -> None:
    for number, how in enumerate(("idle", "loaded", "idle")):
        place = put(tmp_path / str(number), {f"{number}.txt": faster(SYSBENCH, f"{500 + number}.00")})
        import_logs(Request(paths=(place,), environment="vm", labels={"condition": how}), tmp_path / "campaign")
    trials = Campaign.open(tmp_path / "campaign").trials(texts=False)
    rounds = {trial.imported.file: trial.round for trial in trials if trial.imported}
    assert rounds == {"0.txt": 1, "1.txt": 1, "2.txt": 2}


def test_a_unit_that_is_stated_makes_a_table_readable(tmp_path: Path) -> None:
    imported(tmp_path, {"rows.txt": ROWS}, units={"iozone": "operations"})
    values = {
        (one.labels["record_bytes"], one.labels["operation"]): one.value
        for one in measurements(tmp_path)
        if one.metric == "operations_rate"
    }
    assert len(values) == 26
    assert (values["4096", "write"], values["4096", "freread"], values["8192", "read"]) == (100, 1300, 350)
    throughput = {one.value for one in measurements(tmp_path) if one.metric == "throughput"}
    assert 100 * 4096 in throughput  # operations of 4 KiB
    (trial,) = Campaign.open(tmp_path / "campaign").trials(texts=False)
    assert trial.imported is not None
    assert trial.imported.unit == "operations per second"


def test_kilobytes_of_a_stated_unit_are_1024_bytes(tmp_path: Path) -> None:
    imported(tmp_path, {"rows.txt": ROWS}, units={"iozone": "kB/s"})
    assert {one.unit for one in measurements(tmp_path)} == {"byte/s"}
    assert 100 * 1024 in {one.value for one in measurements(tmp_path)}


def test_a_unit_that_the_log_says_is_not_overridden(tmp_path: Path) -> None:
    imported(tmp_path, {"a.txt": text_of(LOGS["iozone kB"])}, units={"iozone": "operations"})
    assert {one.unit for one in measurements(tmp_path)} == {"byte/s"}


def test_a_row_that_may_be_cut_off_is_still_refused(tmp_path: Path) -> None:
    imported(tmp_path, {"rows.txt": ROWS.rstrip()[:-1]}, units={"iozone": "kB/s"})
    assert len(measurements(tmp_path)) == 13


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"environment": "", "layout": "{environment}/{node}_{node}.txt"}, "more than once"),
        ({"environment": "", "layout": "{environment}/{Node}.txt"}, "is not a name"),
        ({"environment": "", "layout": "{environment}/{target}.txt"}, "measurements have themselves"),
        ({"layout": "{environment}/**"}, "give the environment"),
        ({"environment": "", "layout": "{node}.txt"}, "give the environment"),
        ({"layout": "{node}.txt", "labels": {"node": "a"}}, "also in --layout"),
        ({"units": {"iozone": "furlongs"}}, "iozone=furlongs cannot be stated"),
        ({"units": {"ping": "ms"}}, "ping=ms cannot be stated"),
    ],
)
def test_statements_that_make_no_sense_are_refused(tmp_path: Path, options: dict[str, object], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        imported(tmp_path, {"a.txt": SYSBENCH}, **options)


@pytest.mark.parametrize("pair", ["idle", "condition=", "Condition=idle", "metric=x", "a=b\n"])
def test_wrong_labels(pair: str) -> None:
    with pytest.raises(UsageError):
        labels_given([pair])


def test_options_that_contradict_themselves() -> None:
    assert labels_given(["a=1", "b=2", "a=1"]) == {"a": "1", "b": "2"}
    with pytest.raises(UsageError, match="two values for a"):
        labels_given(["a=1", "a=2"])
    with pytest.raises(UsageError, match="once for each tool"):
        units_given(["iozone=kB/s", "iozone=operations"])


def test_labels_without_an_environment_in_the_layout(tmp_path: Path) -> None:
    imported(tmp_path, {"idle.txt": SYSBENCH}, environment="vm", layout="{condition}.txt")
    assert {one.labels["condition"] for one in measurements(tmp_path)} == {"idle"}


# --- runs under two conditions --------------------------------------------------------------------------------------


def runs(tmp_path: Path, names: Mapping[str, float]) -> None:
    files = {f"vm/{name}.txt": faster(SYSBENCH, f"{rate:.2f}") for name, rate in names.items()}
    others = {f"host/{n}.txt": faster(SYSBENCH, f"{1200 + n}.00") for n in range(len(names))}
    imported(tmp_path, {**files, **others}, environment="", layout="{environment}/**", baseline="host")


@pytest.mark.parametrize(("slow", "fast"), [("loaded", "idle"), ("remote", "local"), ("before", "after")])
def test_conditions_in_the_names_of_files_are_a_finding_and_no_answer(tmp_path: Path, slow: str, fast: str) -> None:
    runs(tmp_path, {f"{fast}-1": 1000, f"{fast}-2": 1010, f"{slow}-1": 500, f"{slow}-2": 505})
    (one,) = groups(tmp_path)
    assert one.severity is Severity.BLOCKER
    assert f"{slow} (2 runs, about 50" in one.message
    assert f"{fast} (2 runs, about 1" in one.message
    analysis = pipeline.analyse(tmp_path / "campaign")
    (rate,) = [each for each in analysis.comparisons if each.metric == "events_rate"]
    assert rate.verdict is Verdict.NOT_COMPARABLE


def test_conditions_whose_values_overlap_are_a_warning(tmp_path: Path) -> None:
    runs(tmp_path, {"idle-1": 1000, "idle-2": 1020, "loaded-1": 1010, "loaded-2": 990})
    (one,) = groups(tmp_path)
    assert one.severity is Severity.WARNING


def test_values_alone_name_the_split_by_what_their_files_have_in_common(tmp_path: Path) -> None:
    runs(tmp_path, {f"monday{n}": 1000 + 2 * n for n in range(4)} | {f"friday{n}": 700 + 2 * n for n in range(4)})
    (one,) = groups(tmp_path)
    assert one.severity is Severity.BLOCKER
    assert "its values fall into two groups, friday (4 runs, about 703" in one.message
    assert "monday (4 runs, about 1" in one.message


def test_runs_of_one_group_are_none(tmp_path: Path) -> None:
    runs(tmp_path, {f"run{n}": rate for n, rate in enumerate((1000, 1010, 990, 1005, 995, 1002))})
    assert groups(tmp_path) == []


def test_one_outlier_is_no_group(tmp_path: Path) -> None:
    runs(tmp_path, {f"run{n}": rate for n, rate in enumerate((1000, 1010, 990, 1005, 995, 400))})
    assert groups(tmp_path) == []


@pytest.mark.parametrize("n", [6, 10, 30])
def test_the_rate_of_false_alarms_is_the_stated_one(n: int) -> None:
    """Samples of another seed than the one that the limit comes from, so wide that the distance alone decides nothing.
    Of 20,000, 20 are expected; more than 40 have a probability below 1e-4."""
    random = np.random.Generator(np.random.PCG64(7 + n))
    samples = np.sort(random.normal(scale=3.0, size=(20_000, n)), axis=-1)
    alarms = int((two_modes(samples) > critical(n)).sum())
    assert 4 <= alarms <= 40
    assert sum(split_at(one) is not None for one in samples[two_modes(samples) > critical(n)]) <= alarms
    assert ALPHA == 0.001


@pytest.mark.parametrize(("n", "apart"), [(6, 0.7), (10, 0.4), (20, 0.3)])
def test_groups_that_matter_are_found(n: int, apart: float) -> None:
    """Half of the runs slower, noise of 2 %: at these distances nine of ten are found, and mostly many more."""
    random = np.random.Generator(np.random.PCG64(11))
    samples = random.normal(scale=0.02, size=(500, n))
    samples[:, : n // 2] -= apart
    found = [split_at(one) for one in np.sort(samples, axis=-1)]
    assert found.count(n // 2) >= 450
