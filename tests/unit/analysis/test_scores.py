"""Composite scores: by hand, against scipy, and only where weights are in the plan and everything compares."""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import openpyxl
import pytest
from scipy import stats

from builders.pages import html, markdown, report_input
from builders.synthetic import Campaign, campaign
from vtax.analysis.analyse import analyse
from vtax.analysis.records import Analysis, Score, Verdict
from vtax.cli.analyse import lines_of
from vtax.errors import StudyError
from vtax.figures.theme import mark_of
from vtax.model.finding import Finding, Severity
from vtax.model.measurement import Measurement
from vtax.model.study import ScoreSpec
from vtax.planning.study import parse
from vtax.report.document.compose import document_of
from vtax.report.formats.latex import escape, tables
from vtax.report.formats.xlsx import workbook

SPEC = ScoreSpec(name="overall", weights={"hpcc.HPL": 3.0, "ping.rtt_avg": 1.0})
STUDY = """\
name = "plain"
baseline = "host"
[environments.host]
provider = "host"
[environments.box]
provider = "docker"
[[benchmarks]]
name = "ping"
[[benchmarks]]
name = "hpcc"
"""


def weighted(made: Campaign, *specs: ScoreSpec) -> Campaign:
    study = made.plan.study.model_copy(update={"scores": specs or (SPEC,), "order_adjust": False})
    return replace(made, plan=made.plan.model_copy(update={"study": study}))


CAMPAIGN = weighted(campaign(rounds=8, failing=False))


def judged(made: Campaign = CAMPAIGN, findings: Sequence[Finding] = ()) -> Analysis:
    return analyse(made.measurements, plan=made.plan, findings=findings, trials=made.trials)


def only(analysis: Analysis) -> Score:
    (found,) = analysis.scores
    return found


def test_metrics_are_averaged_in_each_round_and_series_within_a_metric_first() -> None:
    """Six pairs of nodes ping, one HPL runs: HPL counts three times as much as all pings together."""
    found, analysis = only(judged()), judged()
    logs = {
        (level.environment, level.label, level.metric, tuple(level.labels.items())): np.log(
            [cell.value for cell in level.cells]
        )
        for level in analysis.levels
        if level.minimum > 0
    }
    hpl, pings = np.zeros(8), []
    for (environment, label, metric, labels), values in logs.items():
        if environment == "container" and (label, metric) == ("hpcc", "HPL"):
            hpl = values - logs["host", label, metric, labels]
        if environment == "container" and (label, metric) == ("ping", "rtt_avg"):
            pings.append(logs["host", label, metric, labels] - values)
    assert len(pings) == 6
    differences = (3 * hpl + np.mean(pings, axis=0)) / 4
    interval = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    assert found.effect == pytest.approx(differences.mean())
    assert found.ratio == pytest.approx(math.exp(differences.mean()))
    assert found.low == pytest.approx(math.exp(interval.low))
    assert found.high == pytest.approx(math.exp(interval.high))
    assert (found.n, found.dropped, found.weights) == (8, 0, SPEC.weights)


def test_the_verdict_is_exploratory_and_no_comparison_changes() -> None:
    found = only(judged())
    assert found.verdict is Verdict.SLOWER
    assert found.sentence.startswith("slower by ")
    assert found.sentence.endswith(", for this one boot (exploratory)")
    plain = CAMPAIGN.plan.model_copy(update={"study": CAMPAIGN.plan.study.model_copy(update={"scores": ()})})
    without = judged(replace(CAMPAIGN, plan=plain))
    assert without.scores == ()
    assert (without.comparisons, without.family) == (judged().comparisons, judged().family)


def test_a_blocker_of_any_metric_makes_it_not_comparable() -> None:
    blocker = Finding(
        id="N01",
        severity=Severity.BLOCKER,
        message="never left the node",
        remedy="",
        benchmark="ping",
        metrics=("rtt_avg",),
    )
    found = only(judged(findings=[blocker]))
    assert found.verdict is Verdict.NOT_COMPARABLE
    assert found.sentence == "not comparable: ping.rtt_avg: never left the node (exploratory)"
    assert only(judged(findings=[blocker.model_copy(update={"benchmark": "iozone"})])).verdict is Verdict.SLOWER


def test_what_only_one_of_both_has_is_not_comparable() -> None:
    fewer = tuple(m for m in CAMPAIGN.measurements if not _first_pair(m) or m.environment == "host")
    found = only(judged(replace(CAMPAIGN, measurements=fewer)))
    assert (
        found.sentence
        == "not comparable: ping.rtt_avg was not measured in the same way in container and host (exploratory)"
    )
    assert (found.ratio, found.low) == (None, None)


def _first_pair(item: Measurement) -> bool:
    return item.metric == "rtt_avg" and item.labels.get("client") == "master" and item.labels.get("server") == "worker1"


def test_a_round_without_all_of_it_is_dropped_and_counted() -> None:
    fewer = tuple(m for m in CAMPAIGN.measurements if not _first_pair(m) or m.round != 3)
    found = only(judged(replace(CAMPAIGN, measurements=fewer)))
    assert (found.n, found.dropped) == (7, 1)


def test_swapping_negates_and_neither_units_nor_the_order_of_files_matter() -> None:
    one = only(judged())
    names = {"host": "container", "container": "host"}
    swapped = tuple(m.model_copy(update={"environment": names[m.environment]}) for m in CAMPAIGN.measurements)
    assert only(judged(replace(CAMPAIGN, measurements=swapped))).effect == -(one.effect or math.nan)
    backwards = replace(CAMPAIGN, measurements=CAMPAIGN.measurements[::-1], trials=CAMPAIGN.trials[::-1])
    assert only(judged(backwards)).model_dump_json() == one.model_dump_json()
    scaled = tuple(m.model_copy(update={"value": m.value * 1024}) for m in CAMPAIGN.measurements)
    other = only(judged(replace(CAMPAIGN, measurements=scaled)))
    assert (other.verdict, other.sentence) == (one.verdict, one.sentence)
    assert other.effect == pytest.approx(one.effect, abs=1e-12)
    heavier = weighted(CAMPAIGN, SPEC.model_copy(update={"weights": {"hpcc.HPL": 6.0, "ping.rtt_avg": 2.0}}))
    assert only(judged(heavier)).effect == one.effect


def test_the_report_and_the_terminal_tell_it() -> None:
    analysis = judged()
    report = report_input(CAMPAIGN, analysis)
    row = next(line for line in markdown(report).splitlines() if line.startswith("| overall"))
    assert "hpcc.HPL 3, ping.rtt\\_avg 1" in row
    assert "exploratory" in row
    assert "Composite scores" in html(report)
    assert any(line.startswith("score overall: container against host: slower by ") for line in lines_of(analysis))
    plain = report_input(campaign(rounds=6))
    assert "Composite scores" not in markdown(plain)


def test_a_paper_and_the_workbook_have_its_numbers() -> None:
    analysis = judged()
    one = only(analysis)
    assert one.ratio is not None
    text = tables(document_of(report_input(CAMPAIGN, analysis)))
    (row,) = (line for line in text.splitlines() if line.startswith("overall (hpcc.HPL 3, ping.rtt\\_avg 1)"))
    assert rf"container & \num{{{one.ratio:.3g}}}" in row
    assert f"{escape(mark_of(one.verdict).glyph)} {one.verdict}" in text
    book = openpyxl.load_workbook(io.BytesIO(workbook(document_of(report_input(CAMPAIGN, analysis)))))
    head, values = book["scores"].iter_rows(values_only=True)
    told = dict(zip(head, values, strict=True))
    assert (told["ratio"], told["low"], told["high"]) == (one.ratio, one.low, one.high)
    assert told["weights"] == "hpcc.HPL 3, ping.rtt_avg 1"
    plain = report_input(campaign(rounds=6))
    assert "Composite" not in tables(document_of(plain))
    assert "scores" not in openpyxl.load_workbook(io.BytesIO(workbook(document_of(plain)))).sheetnames


@pytest.mark.parametrize(
    ("table", "path", "said"),
    [
        ('name = "all"', "scores[0].weights", "is missing"),
        ('name = "all"\nweights = {}', "scores[0].weights", "{}: dictionary should have at least 1 item"),
        ('name = "all"\nweights = { "hpcc.HPL" = 0 }', "scores[0].weights", "0: input should be greater than 0"),
        ('name = "all"\nweights = { "hpcc.HPLL" = 1 }', "scores[0].weights", "there is no metric with a ratio"),
        (
            'name = "all"\nweights = { "ping.lost_fraction" = 1 }',
            "scores[0].weights",
            "there is no metric with a ratio",
        ),
        (
            'name = "all"\nweights = { "hpcc.HPL" = 1 }\n[[scores]]\nname = "all"\nweights = { "hpcc.HPL" = 2 }',
            "scores[1].name",
            'two scores are called "all"',
        ),
    ],
)
def test_mistakes_are_named(table: str, path: str, said: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse(f"{STUDY}[[scores]]\n{table}\n", "test.toml")
    found = {mistake.path: str(mistake.message) for mistake in caught.value.mistakes}
    place = next(name for name in found if name.startswith(path))
    assert said in found[place]


def test_weights_are_in_the_study_in_one_order() -> None:
    text = f'{STUDY}[[scores]]\nname = "all"\nweights = {{ "ping.rtt_avg" = 1, "hpcc.HPL" = 2 }}\n'
    (spec,) = parse(text, "test.toml").scores
    assert list(spec.weights.items()) == [("hpcc.HPL", 2.0), ("ping.rtt_avg", 1.0)]
