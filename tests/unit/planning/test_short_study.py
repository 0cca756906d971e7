"""The study behind `vtax measure`: its text is a study file like any other."""

from __future__ import annotations

import math
import tomllib
from pathlib import Path
from typing import Any

import pytest

from vtax.errors import UsageError
from vtax.model.study import BenchmarkSpec, Study
from vtax.planning.short_study import Request, study_text
from vtax.planning.study import of_text, parse


def study(request: Request) -> Study:
    return parse(study_text(request), "vtax measure")


def entry(request: Request) -> BenchmarkSpec:
    (found,) = study(request).benchmarks
    return found


def params(request: Request) -> dict[str, Any]:
    return dict(entry(request).params)


def test_without_options_wall_time_decides_in_the_environments_of_quick() -> None:
    found = study(Request(("sleep", "0.1")))
    assert [one.name for one in found.environments] == ["host", "container", "vm"]
    assert found.baseline == "host"
    assert found.looks == (6, 10, 16, 24)
    assert found.interleave == "trial"
    (own,) = found.benchmarks
    assert (own.label, own.nodes, own.iterations) == ("sleep", ("worker1",), 4)
    found_params: dict[str, Any] = dict(own.params)
    assert found_params["run"]["command"] == ["sleep", "0.1"]
    assert found_params["metrics"] == []


def test_environments_are_those_that_are_named_the_first_as_baseline() -> None:
    found = study(Request(("true",), ("docker", "host"), rounds=3))
    assert [(one.name, one.provider) for one in found.environments] == [("docker", "docker"), ("host", "host")]
    assert (found.baseline, found.rounds, found.looks) == ("docker", 3, (3,))


def test_an_unknown_environment_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no environment 'lxc'"):
        study_text(Request(("true",), ("lxc",)))


def test_braces_and_quotes_mean_nothing() -> None:
    words = ("awk", '{ print "\\t{cpus}" }', "it's", "ü")
    text = study_text(Request(words))
    assert params(Request(words))["run"]["command"] == ["awk", '{{ print "\\t{{cpus}}" }}', "it's", "ü"]
    assert tomllib.loads(text)["benchmarks"][0]["run"]["command"][2:] == ["it's", "ü"]


@pytest.mark.parametrize(
    ("text", "seconds", "kind", "direction", "regex", "unit"),
    [
        ("tps=tps = ([0-9.]+) 1/s", None, "rate, fixed work", None, "tps = ([0-9.]+)", "1/s"),
        ("tps=tps = ([0-9.]+) 1/s", 20.0, "rate, fixed time", None, "tps = ([0-9.]+)", "1/s"),
        ("lat=avg ([0-9]+) ms", None, "cost", None, "avg ([0-9]+)", "ms"),
        ("heap=([0-9]+) MiB lower", None, "cost", None, "([0-9]+)", "MiB"),
        ("score=([0-9]+) points higher", None, "ratio", "higher", "([0-9]+)", "points"),
        ("bw=([0-9]+) MB/s higher", None, "rate, fixed work", None, "([0-9]+)", "MB/s"),
    ],
)
def test_a_metric_is_a_name_a_pattern_and_a_unit(
    text: str, seconds: float | None, kind: str, direction: str | None, regex: str, unit: str
) -> None:
    (found,) = params(Request(("true",), metrics=(text,), seconds=seconds))["metrics"]
    assert found["kind"] == kind
    assert (found["direction"], found["regex"], found["unit"], found["primary"]) == (direction, regex, unit, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("tps", "is not NAME=REGEX UNIT"),
        ("=([0-9]+) 1/s", "is not NAME=REGEX UNIT"),
        ("tps=([0-9]+)", "is not NAME=REGEX UNIT"),
        ("score=([0-9]+) points", "it is not clear whether more points is better"),
        ("tps=([0-9]+) 1/s lower", "higher is better"),
        ("time=([0-9]+) s higher", "lower is better"),
    ],
)
def test_a_metric_that_is_not_clear_is_refused(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        study_text(Request(("true",), metrics=(text,)))


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (Request(("true",), ("host", "host")), "the environment host is named twice"),
        (Request(("true",), ("host",), seconds=math.inf), "--seconds inf has no end"),
        (Request(("true",), ("host",), ("x=([0-9]+) KB",)), "--metric x: "),
        (Request(("true",), ("host",), ("x=([0-9]+) Mbps",)), "--metric x: "),
        (Request(("printf", "a\udcff"), ("host",)), "the argument 'a\\xff' is not UTF-8 text"),
        (Request(("true",), ("host",), image="docker-archive:\udc80.tar"), "is not UTF-8 text"),
    ],
)
def test_a_request_that_makes_no_study_is_refused(request_: Request, said: str) -> None:
    with pytest.raises(UsageError) as raised:
        study_text(request_)
    assert said in str(raised.value)


def test_files_are_those_of_this_directory(tmp_path: Path) -> None:
    (tmp_path / "work.sh").write_text("#!/bin/sh\n")
    text = study_text(Request(("./work.sh",), files=("work.sh",)))
    found = of_text(text, "vtax measure", tmp_path)
    given: dict[str, Any] = dict(found.benchmarks[0].params)
    (file,) = given["files"]
    assert (file["from"], file["size_bytes"]) == ("work.sh", 10)
    assert len(file["sha256"]) == 64


def test_labels_are_names() -> None:
    labels = [entry(Request((word,))).label for word in ("/usr/bin/Pg_Bench-17", "7z", "./x", "[", "command")]
    assert labels == ["pg-bench-17", "run-7z", "x", "run", "run-command"]


def test_a_command_in_an_image_starts_where_its_files_are() -> None:
    with_files = study(Request(("/app/work",), files=("work.sh",), image="docker-archive:app.tar")).benchmarks[0]
    assert with_files.params["directory"] == "{dir}"
    without = study(Request(("/app/work",), image="docker-archive:app.tar")).benchmarks[0]
    assert without.params["directory"] is None, "that of the image"


def test_an_image_may_bring_its_own_command() -> None:
    found = study(Request((), image="docker-archive:app.tar"))
    assert found.image.workload is not None
    given: dict[str, Any] = dict(found.benchmarks[0].params)
    assert not (given["run"] or {}).get("command")
