"""vtax's own tables come back as campaigns: nothing is lost, and a damaged one is refused with its row."""

from __future__ import annotations

import json
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders.logs import LOGS, SYSBENCH, imported, text_of
from builders.measurements import measurement
from vtax import pipeline
from vtax.errors import UsageError
from vtax.export.tables import LOSSLESS, export
from vtax.importing.campaign import import_logs
from vtax.importing.report import Report
from vtax.importing.request import Request
from vtax.model.finding import Severity
from vtax.model.measurement import Measurement
from vtax.model.metric import Kind
from vtax.store import Campaign

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
VALUES = st.floats(min_value=5e-324, allow_nan=False, allow_infinity=False)


def row(value: float, environment: str = "host", round: int = 1, place: int = 1, **fields: object) -> Measurement:
    """A row as vtax exports it: its trial is `<cell>/<work>.<iteration>`, its source a file of that trial."""
    made = measurement(value, environment=environment, round=round)
    cell = f"{environment}.r{round:03d}"
    trial = f"{cell}/tool.{place}"
    own = {"cell": cell, "trial": trial, "iteration": place, "source": f"trials/{trial}/0-node1.stdout"}
    return made.model_copy(update={**own, **fields})


ROWS = [
    row(2.0, environment, round, place, warmup=place == 1, labels={"target": "node1", "b": 'a "comma", and\nmore'})
    for round in (1, 2)
    for environment in ("host", "box")
    for place in (1, 2)
]


def taken(folder: Path, data: bytes, name: str, into: str = "back", **options: Any) -> Report:
    folder.mkdir(exist_ok=True, parents=True)
    (folder / name).write_bytes(data)
    return import_logs(Request(paths=(folder / name,), **options), folder / into)


def exported(directory: Path, format: str) -> bytes:
    return export(pipeline.measurements(directory)[0], format)


@pytest.mark.parametrize("format", LOSSLESS)
def test_a_campaign_of_logs_comes_back_byte_for_byte(tmp_path: Path, format: str) -> None:
    files = {name.replace(" ", "-"): text_of(path) for name, path in LOGS.items()}
    imported(tmp_path, dict(files))
    data = exported(tmp_path / "campaign", format)
    report = taken(tmp_path / "table", data, "data")  # the name says nothing
    assert len(data) > 1000
    assert report.taken == len(pipeline.measurements(tmp_path / "campaign")[0])
    assert exported(tmp_path / "table/back", format) == data
    (tables,) = {trial.imported.raw for trial in Campaign.open(tmp_path / "table/back").trials() if trial.imported}
    assert (tmp_path / "table/back" / tables).read_bytes() == data


@settings(max_examples=25, deadline=None)
@given(
    format=st.sampled_from(LOSSLESS),
    values=st.lists(st.tuples(VALUES, st.sampled_from(Kind), st.booleans(), TEXTS), min_size=1, max_size=5),
)
def test_whatever_a_row_says_comes_back(format: str, values: list[tuple[float, Kind, bool, str]]) -> None:
    rows = [
        row(value, "vm", 1 + place // 2, place + 1, kind=kind, primary=primary, warmup=not primary, labels={"a": text})
        for place, (value, kind, primary, text) in enumerate(values)
    ]
    with TemporaryDirectory() as folder:
        data = export(rows, format)
        taken(Path(folder), data, "t")
        assert pipeline.measurements(Path(folder) / "back")[0] == tuple(rows)
        assert exported(Path(folder) / "back", format) == data


def test_every_source_is_a_file_of_the_campaign(tmp_path: Path) -> None:
    taken(tmp_path, export(ROWS, "csv"), "t.csv")
    for item in pipeline.measurements(tmp_path / "back")[0]:
        assert (tmp_path / "back" / item.source).is_file()


def test_warm_ups_stay_out_of_levels_and_the_table_is_a_pilot(tmp_path: Path) -> None:
    taken(tmp_path, export(ROWS, "jsonl"), "t", baseline="box")
    analysis = pipeline.analyse(tmp_path / "back")
    assert {(level.environment, level.n) for level in analysis.levels} == {("host", 2), ("box", 2)}
    assert analysis.baseline == "box"
    assert any(found.id == "R01" and found.severity is Severity.BLOCKER for found in analysis.findings)
    assert pipeline.report(tmp_path / "back").is_file()


def test_a_second_table_extends_and_the_same_one_does_not(tmp_path: Path) -> None:
    taken(tmp_path, export(ROWS, "csv"), "one.csv")
    with pytest.raises(UsageError, match="nothing could be imported") as caught:
        taken(tmp_path, export(ROWS, "csv"), "again.csv")
    assert "U03" in str(caught.value.detail)
    taken(tmp_path, export([row(3.0, "third")], "csv"), "two.csv")
    assert [item.value for item in pipeline.measurements(tmp_path / "back")[0]].count(3.0) == 1
    with pytest.raises(UsageError) as caught:
        taken(tmp_path, export([row(4.0, "third")], "csv"), "three.csv")
    assert "exists already" in str(caught.value.detail)
    assert len(pipeline.measurements(tmp_path / "back")[0]) == len(ROWS) + 1


def test_an_environment_is_not_given_to_a_table(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        taken(tmp_path, export(ROWS, "csv"), "t.csv", environment="vm")
    assert "names its environments itself" in str(caught.value.detail)
    assert not (tmp_path / "back").exists()


def test_logs_still_need_an_environment(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="the environment of the files"):
        taken(tmp_path, SYSBENCH.encode(), "cpu.txt")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"value": 0.0}, "row 2 is not a measurement: elapsed is 0 s, and a cost is above zero"),
        ({"value": "fast"}, "row 2 is not a measurement: value"),
        ({"schema": "vtax-measurements/9"}, "row 2 is not a measurement: the table has schema"),
        ({"trial": "../../etc/x"}, "row 2 is not a measurement: '../../etc/x' is not a name of a trial"),
        ({"source": "/etc/passwd"}, "'/etc/passwd' is not a file of trial"),
        ({"cell": "../c"}, "'../c' is not a name of a cell"),
        ({"cell": "box.r001"}, "cell box.r001 is of another environment"),
        ({"round": 0}, "rounds and iterations count from 1"),
        ({"trial": "host.r001/tool.1", "source": "trials/host.r001/tool.1/0-node1.stdout"}, "has another iteration"),
    ],
)
def test_a_damaged_row_is_named_and_nothing_is_written(tmp_path: Path, change: dict[str, object], said: str) -> None:
    rows = [json.loads(line) for line in export(ROWS, "jsonl").decode().splitlines()]
    if said.startswith("cell"):
        rows[0]["cell"] = "box.r001"
        rows[1] = rows[1] | {"environment": "other", "cell": "box.r001"}
    rows[1] |= change
    data = "".join(json.dumps(one) + "\n" for one in rows).encode()
    with pytest.raises(UsageError) as caught:
        taken(tmp_path, data, "t.jsonl")
    assert said in str(caught.value.detail)
    assert caught.value.exit_code == 2
    assert not (tmp_path / "back").exists()


def test_two_rows_of_one_thing_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as caught:
        taken(tmp_path, export([row(1.0), row(2.0)], "csv"), "t.csv")
    assert "row 2 is not a measurement: it is of the same thing as row 1" in str(caught.value.detail)


def test_a_table_that_was_cut_is_refused(tmp_path: Path) -> None:
    for format in LOSSLESS:
        data = export(ROWS, format)
        with pytest.raises(UsageError):
            taken(tmp_path, data[: len(data) - 30], "t", into=format)
        assert not (tmp_path / format).exists()
