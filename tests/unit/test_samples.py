"""`vtax plan STUDY --sample`: metrics are tried on outputs before anything runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from vtax.cli.app import app
from vtax.cli.sample import as_json, fits, lines_of, try_samples
from vtax.errors import UsageError
from vtax.model.study import Study
from vtax.planning.study import parse

STUDY = """\
name = "own"
baseline = "host"
[environments.host]
provider = "host"

[[benchmarks]]
name = "command"
label = "pgbench"
run = { command = ["pgbench"], seconds = 5, success = { match = "failed: 0 ", refuse = "FATAL" } }
[[benchmarks.metrics]]
name = "tps"
unit = "1/s"
kind = "rate, fixed time"
primary = true
regex = 'tps = ([0-9.]+) \\(without'
[[benchmarks.metrics]]
name = "latency"
unit = "ms"
kind = "cost"
regex = 'average = ([0-9.]+) ms'
[[benchmarks.metrics]]
name = "errors"
unit = "1"
kind = "count"
from = "stderr"
regex = 'errors: ([0-9]+)'
[[benchmarks.metrics]]
builtin = "max_rss"
"""
SECOND = """\
[[benchmarks]]
name = "command"
label = "disk"
command = ["fio"]
[[benchmarks.metrics]]
reader = "fio"
from = "out.json"
primary = ["read_iops"]
"""
GOOD = """\
failed: 0 (0.000%)
latency average = 0.489 ms
tps = 2044.871733 (without initial connection time)
"""


def study(text: str = STUDY) -> Study:
    return parse(text, "own.toml")


def file(tmp_path: Path, text: str, name: str = "sample.txt") -> str:
    (tmp_path / name).write_text(text)
    return str(tmp_path / name)


def lines(tmp_path: Path, text: str, label: str = "pgbench") -> list[str]:
    return lines_of(try_samples(study(), [f"{label}={file(tmp_path, text)}"]))


def test_a_sample_gives_a_table_of_what_was_found_and_where(tmp_path: Path) -> None:
    assert lines(tmp_path, GOOD) == [
        "pgbench: 2 numbers",
        "metric   value     unit  better  decides  found",
        "tps      2,044.87  1/s   higher  yes      stdout, line 3",
        "latency  489.000   µs    lower            stdout, line 2",
        "not tried: errors: no sample of stderr",
        "not tried: max_rss: measured while the command runs",
    ]


def test_what_is_not_there_is_named_with_what_is(tmp_path: Path) -> None:
    text = GOOD.replace("2044.871733", "nan")
    entries = try_samples(study(), [file(tmp_path, text)])
    assert not fits(entries)
    assert lines_of(entries)[-2:] == [
        r"no number: stdout:3: tps: tps = ([0-9.]+) \(without matches nothing; "
        "most like it is line 3: 'tps = nan (without initial connection time)'",
        "      3 | tps = nan (without initial connection time)",
    ]


def test_an_output_without_anything_like_it_shows_its_last_lines(tmp_path: Path) -> None:
    shown = lines(tmp_path, "failed: 0 \n1\n2\n3\n4\n")
    assert shown[0] == "pgbench: 0 numbers"
    assert shown[-3:] == ["      3 | 2", "      4 | 3", "      5 | 4"]


def test_an_output_that_nothing_is_read_from_does_not_fit(tmp_path: Path) -> None:
    entries = try_samples(study(STUDY + SECOND), [f"disk/stderr={file(tmp_path, 'tps = 5')}"])
    assert not fits(entries)
    assert "no metric of disk is read from it; they are read from out.json" in "\n".join(lines_of(entries))


def test_patterns_of_success_are_tried_too(tmp_path: Path) -> None:
    refused = lines(tmp_path, GOOD + "FATAL: out of memory\n")
    assert "no number: stdout: success.refuse: FATAL is there, so this run has failed" in refused
    unsure = lines(tmp_path, GOOD.replace("failed: 0", "failed: 7"))
    assert "not tried: success.match: failed: 0  is not in the samples of stdout" in unsure
    both = [f"pgbench={file(tmp_path, 'x')}", f"pgbench/stderr={file(tmp_path, 'errors: 3 x', 'err')}"]
    assert "no number: stdout: success.match: failed: 0  is in neither output, so this run has failed" in lines_of(
        try_samples(study(), both)
    )


def test_other_outputs_are_named(tmp_path: Path) -> None:
    data = Path(__file__).parents[1] / "data" / "readers" / "fio" / "3.39--trixie" / "output"
    samples = [f"pgbench/stderr={file(tmp_path, 'errors: 3 x')}", f"disk/out.json={data}"]
    first, second = try_samples(study(STUDY + SECOND), samples)
    assert [(v.metric.name, v.value) for v in first.tried.readings["stderr"].values] == [("errors", 3.0)]
    assert len(second.tried.readings["out.json"].values) == 12


def test_a_sample_that_no_metric_reads_is_a_mistake_to_report(tmp_path: Path) -> None:
    entries = try_samples(study(), [f"pgbench/out.txt={file(tmp_path, 'x')}"])
    assert not fits(entries)
    assert "no metric of pgbench is read from it; they are read from stderr and stdout" in lines_of(entries)[-2]


def test_json_has_base_units(tmp_path: Path) -> None:
    entries = try_samples(study(), [file(tmp_path, GOOD)])
    found = json.loads(json.dumps(as_json(entries)))
    assert found["fits"] is True
    assert found["entries"][0]["values"][1] == {
        "metric": "latency",
        "value": 0.000489,
        "unit": "s",
        "kind": "cost",
        "direction": "lower is better",
        "primary": False,
        "labels": {},
        "from": "stdout",
        "line": 2,
    }


@pytest.mark.parametrize(
    ("sample", "words"),
    [
        ("x=FILE", "there is no entry 'x'"),
        ("FILE", "of which entry?"),
        ("pgbench=/no/such/file", "/no/such/file cannot be read: No such file"),
        ("pgbench=/", "/ cannot be read: Is a directory"),
    ],
)
def test_samples_that_cannot_be_used(tmp_path: Path, sample: str, words: str) -> None:
    given = sample.replace("FILE", file(tmp_path, GOOD))
    with pytest.raises(UsageError, match=words.replace("?", r"\?")):
        try_samples(study(STUDY + SECOND), [given])


def test_one_output_has_one_sample(tmp_path: Path) -> None:
    given = file(tmp_path, GOOD)
    with pytest.raises(UsageError, match="pgbench has two samples of stdout"):
        try_samples(study(), [given, f"pgbench={given}"])


def test_a_study_without_own_metrics_has_nothing_to_try(tmp_path: Path) -> None:
    plain = study(STUDY.split("[[benchmarks]]")[0] + '[[benchmarks]]\nname = "ping"\n')
    with pytest.raises(UsageError, match="no entry of the study has metrics of its own"):
        try_samples(plain, [file(tmp_path, GOOD)])


def test_a_file_may_have_an_equals_sign_in_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    file(tmp_path, GOOD, "clients=8")
    assert fits(try_samples(study(), ["clients=8"]))


def test_the_command_ends_with_code_2_where_a_metric_finds_nothing(tmp_path: Path) -> None:
    own, good = file(tmp_path, STUDY, "own.toml"), file(tmp_path, GOOD)
    bad = file(tmp_path, "failed: 0 \ntps = \x1b[31m<b>\n", "bad")
    assert CliRunner().invoke(app, ["plan", own, "--sample", good]).exit_code == 0
    failed = CliRunner().invoke(app, ["plan", own, "--sample", bad])
    assert failed.exit_code == 2
    assert "\x1b" not in failed.output
    assert r"tps = \x1b[31m<b>" in failed.output
    printed = CliRunner().invoke(app, ["plan", own, "--sample", bad, "--json"])
    assert (printed.exit_code, json.loads(printed.output)["fits"]) == (2, False)
