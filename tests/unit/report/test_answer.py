"""The answer: what lines and title say for which verdicts, and never more than these support."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import chain, combinations
from types import SimpleNamespace

import pytest

from builders.measurements import analysed, rounds
from builders.pages import html, markdown, report_input
from builders.quick import FIRST, IDLE, READY, quick, quick_analysis
from builders.synthetic import IO, campaign
from vtax.analysis.analyse import analyse
from vtax.analysis.records import Analysis, Comparison, Verdict
from vtax.model.capabilities import Capabilities, NodeKind
from vtax.model.finding import Finding, Severity
from vtax.model.plan import Origin
from vtax.model.reading import ReadValue, TrialReading
from vtax.report.document.answer import wording
from vtax.report.document.answer.compose import answer_of
from vtax.report.document.answer.deciding import deciding
from vtax.report.document.answer.headline import headline
from vtax.report.document.answer.limits import limits_of, resolution, width
from vtax.report.document.answer.lines import lines_of, standing_of
from vtax.report.document.answer.model import Line, Standing
from vtax.report.document.groups import Group
from vtax.report.document.results import results_of
from vtax.report.records import ReportInput
from vtax.tools import benchmarks

Made = Callable[..., Analysis]
ENTRIES = {  # of each resource an entry of the synthetic campaign with one primary metric
    Group.COMPUTE: ("sysbench-cpu", "events_rate"),
    Group.MEMORY: ("sysbench-memory", "throughput"),
    Group.STORAGE: ("iozone", "throughput"),
    Group.NETWORK: ("ping", "rtt_avg"),
}
RATIOS = {
    Verdict.SLOWER: (0.89, 0.86, 0.92),
    Verdict.FASTER: (1.08, 1.05, 1.11),
    Verdict.EQUIVALENT: (1.0, 0.985, 1.012),
    Verdict.TRIVIAL: (0.99, 0.982, 0.998),
    Verdict.INCONCLUSIVE: (0.985, 0.935, 1.04),
    Verdict.UNADJUSTED: (0.97, 0.945, 0.996),
    Verdict.PILOT: (0.9, 0.7, 1.2),
    Verdict.DATA_ONLY: (0.9, None, None),
    Verdict.NOT_COMPARABLE: (0.5, 0.4, 0.6),
}


@pytest.fixture(scope="module")
def judged() -> Analysis:
    return report_input(campaign(("host", "container"), 6, failing=False)).analysis


@pytest.fixture
def made(judged: Analysis) -> Made:
    """An analysis with made-up comparisons: `made(("container", Group.COMPUTE, Verdict.SLOWER), ...)`."""
    like = next(item for item in judged.comparisons if item.primary)

    def build(*wanted: tuple[str, Group, Verdict], **more: object) -> Analysis:
        items = tuple(comparison(like, *one) for one in wanted)
        names = tuple(dict.fromkeys(("host", *(name for name, *_ in wanted))))
        return judged.model_copy(update={"environments": names, "comparisons": items, **more})

    return build


def comparison(like: Comparison, environment: str, group: Group, verdict: Verdict, **more: object) -> Comparison:
    benchmark, metric = ENTRIES[group]
    ratio, low, high = RATIOS[verdict]
    own = {
        "environment": environment,
        "benchmark": benchmark,
        "label": benchmark,
        "metric": metric,
        "labels": {},
        "verdict": verdict,
        "ratio": ratio,
        "low": low,
        "high": high,
        "n": 4 if verdict in (Verdict.PILOT, Verdict.DATA_ONLY) else 6,
        "ruled_out_by": "C05" if verdict is Verdict.NOT_COMPARABLE else "",
        "remark": "",
        "notes": (),
        "new_campaign": None,
        "more_rounds": None,
    }
    return like.model_copy(update=own | more)


def title(analysis: Analysis, **more: bool) -> str:
    return headline(lines_of(analysis, **more), analysis.emulated, **more)


# --- sizes in words ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(0.89, "11 %"), (1.083, "8.3 %"), (0.9925, "0.75 %"), (0.5, "50 %"), (0.49, "2 times"), (3.14, "3.1 times")],
)
def test_a_size_is_percent_or_a_factor(ratio: float, text: str) -> None:
    assert wording.size(ratio) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (0.935, 1.034, "at most 7 % slower or 4 % faster"),
        (0.31, 1.5, "at most 3.3 times slower or 50 % faster"),
        (0.93, 0.996, "at most 7 % slower, not faster"),
        (1.001, 1.2, "at most 20 % faster, not slower"),
        (3e-6, 3e5, "the noise hides any difference"),
        (0.99, 12.0, "the noise hides any difference"),
        (0.0, 0.5, "the noise hides any difference"),
        (0.0498, 0.1171, "at most 20.1 times slower, not faster"),
    ],
)
def test_what_an_interval_excludes_is_never_narrower_than_it(low: float, high: float, text: str) -> None:
    assert wording.excluded(low, high) == text


def test_ranges_and_changes_in_words() -> None:
    assert wording.sizes([0.89, 0.97]) == "3 to 11 %"
    assert wording.sizes([0.3, 0.95]) == "5 % to 3.3 times"
    assert wording.within([0.985, 1.012]) == "2 %"
    assert wording.within([0.9971, 1.0001]) == "0.3 %"
    assert wording.changes([0.89], 0.86, 0.92) == "-11 % [-14 %, -8.0 %]"
    assert wording.changes([0.89, 1.0], None, None) == "-11 % to +0.0 %"
    assert wording.changes([0.9996, 0.996], 0.99, 1.003) == "-0.4 % to +0.0 % [-1.0 %, +0.3 %]", "no -0.0"
    assert wording.changes([0.9], 1e-5, 1e5) == "-10 % [too wide to say]"
    assert wording.changes([0.0764], 0.0498, 0.1171) == "× 0.076 [× 0.05, × 0.12]", "far from 1 is not wide"
    assert wording.changes([0.519], 0.37, 0.73) == "-48 % [-63 %, -27 %]", "not half in percent, half as factors"
    assert wording.changes([0.49, 0.9], 0.4, 0.95) == "× 0.49 to × 0.9 [× 0.4, × 0.95]"
    assert [wording.shown(name) for name in ("container", "vm", "vms", "vm-bridge", "lxc", "bare metal")] == [
        "Container",
        "VM",
        "VMs",
        "VM-bridge",
        "LXC",
        "Bare metal",
    ]


# --- standings: every combination of verdicts ----------------------------------------------------------------------


def sets_of_verdicts(most: int) -> list[tuple[Verdict, ...]]:
    """Every set of up to so many different verdicts."""
    return list(chain.from_iterable(combinations(RATIOS, size) for size in range(most + 1)))


def test_a_line_never_claims_more_than_its_verdicts() -> None:
    """Of all 512 sets of verdicts: a claim needs one, and "no difference" needs all that could be known."""
    for verdicts in sets_of_verdicts(len(RATIOS)):
        found, standing = set(verdicts), standing_of(verdicts)
        assert (standing in (Standing.SLOWER, Standing.MIXED)) == (Verdict.SLOWER in found)
        assert (standing in (Standing.FASTER, Standing.MIXED)) == (Verdict.FASTER in found)
        if standing in (Standing.EQUAL, Standing.SMALL):
            assert found <= {Verdict.EQUIVALENT, Verdict.TRIVIAL, Verdict.NOT_COMPARABLE}
            assert (standing is Standing.SMALL) == (Verdict.TRIVIAL in found)
        if standing is Standing.UNDECIDED:
            assert found & {Verdict.INCONCLUSIVE, Verdict.UNADJUSTED}
        if standing is Standing.RULED_OUT:
            assert found == {Verdict.NOT_COMPARABLE}
        assert (standing is Standing.ALONE) == (not found)


def test_the_title_never_claims_more_than_the_verdicts(made: Made) -> None:
    """One verdict for each resource, in all 256 ways: what the title says of it, and nothing else."""
    for verdicts in sets_of_verdicts(len(ENTRIES)):
        words = title(made(*(("container", group, word) for word, group in zip(verdicts, ENTRIES, strict=False))))
        for range_ in ("at most 7 % slower", "at most 6 % slower", "not faster", "or 4 % faster"):
            words = words.replace(range_, "")
        assert ("slower" in words) == (Verdict.SLOWER in verdicts)
        assert ("faster" in words) == (Verdict.FASTER in verdicts)
        assert ("no measurable cost" in words) == (Verdict.EQUIVALENT in verdicts)
        assert ("negligible" in words) == (Verdict.TRIVIAL in verdicts)
        assert ("undecided" in words) == bool({Verdict.INCONCLUSIVE, Verdict.UNADJUSTED} & set(verdicts))
        assert ("no verdict" in words) == bool({Verdict.PILOT, Verdict.DATA_ONLY} & set(verdicts))


# --- the title -----------------------------------------------------------------------------------------------------


def test_the_title_is_the_answer(made: Made) -> None:
    analysis = made(
        ("container", Group.COMPUTE, Verdict.EQUIVALENT),
        ("container", Group.MEMORY, Verdict.EQUIVALENT),
        ("container", Group.NETWORK, Verdict.SLOWER),
        ("container", Group.STORAGE, Verdict.INCONCLUSIVE),
    )
    assert title(analysis) == (
        "Container: no measurable cost in CPU and memory (within 2 %); network 11 % slower; "
        "storage undecided (at most 7 % slower or 4 % faster)"
    )


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ([(Group.COMPUTE, Verdict.TRIVIAL)], "a negligible difference in CPU (within 2 %)"),
        (
            [(Group.COMPUTE, Verdict.INCONCLUSIVE), (Group.MEMORY, Verdict.INCONCLUSIVE)],
            "CPU and memory undecided (at most 7 % slower or 4 % faster)",
        ),
        ([(Group.COMPUTE, Verdict.UNADJUSTED)], "CPU undecided (at most 6 % slower, not faster)"),
        ([(Group.COMPUTE, Verdict.NOT_COMPARABLE)], "not comparable"),
        (
            [(Group.COMPUTE, Verdict.EQUIVALENT), (Group.MEMORY, Verdict.NOT_COMPARABLE)],
            "no measurable cost in CPU (within 2 %); not comparable in memory",
        ),
        ([(Group.COMPUTE, Verdict.PILOT), (Group.MEMORY, Verdict.PILOT)], "no verdict after 4 rounds, 6 are needed"),
        (
            [(Group.COMPUTE, Verdict.PILOT), (Group.MEMORY, Verdict.NOT_COMPARABLE)],
            "no verdict after 4 rounds, 6 are needed",
        ),
        (
            [(Group.COMPUTE, Verdict.SLOWER), (Group.COMPUTE, Verdict.EQUIVALENT)],
            "CPU 11 % slower in 1 of 2",
        ),
        (
            [(Group.COMPUTE, Verdict.SLOWER), (Group.COMPUTE, Verdict.FASTER)],
            "CPU 11 % slower in 1 of 2, 8 % faster in 1 of 2",
        ),
        (
            [(Group.COMPUTE, Verdict.EQUIVALENT), (Group.COMPUTE, Verdict.NOT_COMPARABLE)],
            "no measurable cost in CPU (1 of 2 results) (within 2 %)",
        ),
        (
            [(Group.COMPUTE, Verdict.EQUIVALENT), (Group.COMPUTE, Verdict.INCONCLUSIVE)],
            "CPU (1 of 2 results) undecided (at most 7 % slower or 4 % faster)",
        ),
    ],
)  # fmt: skip
def test_titles_of_one_environment(made: Made, wanted: Sequence[tuple[Group, Verdict]], text: str) -> None:
    assert title(made(*(("container", *one) for one in wanted))) == f"Container: {text}"


def test_intervals_that_say_nothing_are_words(made: Made) -> None:
    analysis = made(("container", Group.COMPUTE, Verdict.INCONCLUSIVE), ("container", Group.MEMORY, Verdict.EQUIVALENT))
    wide = analysis.comparisons[0].model_copy(update={"low": 3e-6, "high": 3e5})
    text = title(analysis.model_copy(update={"comparisons": (wide, analysis.comparisons[1])}))
    assert text == "Container: no measurable cost in memory (within 2 %); CPU too noisy to decide"
    (line, _) = lines_of(analysis.model_copy(update={"comparisons": (wide, analysis.comparisons[1])}))
    assert line.word == "undecided: the noise hides any difference"
    assert line.size.endswith("[too wide to say]")


def test_a_wide_interval_says_nothing_about_another_resource(made: Made) -> None:
    """CPU within 7 % and the network within 40 % are two statements, not one about 40 %."""
    groups = (Group.COMPUTE, Group.STORAGE, Group.NETWORK)
    analysis = made(*(("container", group, Verdict.INCONCLUSIVE) for group in groups))
    cpu, storage, network = analysis.comparisons
    wide = network.model_copy(update={"low": 0.63, "high": 1.058})
    assert title(analysis.model_copy(update={"comparisons": (cpu, storage, wide)})) == (
        "Container: CPU and storage undecided (at most 7 % slower or 4 % faster); "
        "network undecided (at most 37 % slower or 6 % faster)"
    )


def test_a_result_of_one_entry_is_named_after_it(made: Made) -> None:
    """ "Slower in ping" says more than "in 1 of 2"."""
    analysis = made(("container", Group.NETWORK, Verdict.SLOWER), ("container", Group.NETWORK, Verdict.INCONCLUSIVE))
    ping, other = analysis.comparisons
    found = analysis.model_copy(update={"comparisons": (ping, other.model_copy(update={"label": "iperf3"}))})
    assert title(found) == "Container: network 11 % slower in ping"


def test_a_large_factor_of_one_time_comes_with_the_times(made: Made) -> None:
    """2.8 times slower sounds like a disaster; 9 µs do not. A time that is not known is not said."""
    analysis = made(("container", Group.NETWORK, Verdict.SLOWER))
    slower = {"ratio": 4e-6 / 13e-6, "low": 0.25, "high": 0.4, "unit": "s"}
    ping = analysis.comparisons[0].model_copy(update=slower)
    level = analysis.levels[0].model_copy(update=ping.series_fields | {"environment": "container", "median": 13.2e-6})
    host = level.model_copy(update={"environment": "host", "median": 4.04e-6})
    other = host.model_copy(update={"label": "another", "median": 1.0})
    known = analysis.model_copy(update={"comparisons": (ping,), "levels": (other, host, level)})
    assert title(known) == "Container: network 3.2 times slower (13 µs, host 4.0 µs)"
    assert title(known.model_copy(update={"levels": (level, other)})) == "Container: network 3.2 times slower"
    rate = ping.model_copy(update={"unit": "bit/s"})
    assert title(known.model_copy(update={"comparisons": (rate,)})) == "Container: network 3.2 times slower"


def test_two_environments_have_a_sentence_each_and_many_a_short_one(made: Made) -> None:
    two = [(name, group, Verdict.EQUIVALENT) for name in ("container", "vm") for group in (Group.COMPUTE, Group.MEMORY)]
    assert title(made(*two)) == "Container and vm: no measurable cost in CPU and memory (within 2 %)"
    other = ("vm", Group.STORAGE, Verdict.FASTER)
    assert title(made(*two[:2], other)) == (
        "Container: no measurable cost in CPU and memory (within 2 %). VM: storage 8 % faster"
    )
    three = (
        *two,
        ("podman", Group.COMPUTE, Verdict.SLOWER),
        ("podman", Group.MEMORY, Verdict.SLOWER),
        ("lxc", Group.COMPUTE, Verdict.INCONCLUSIVE),
    )
    assert title(made(*three)) == (
        "Container and vm: no cost above 2 %. Podman: up to 11 % slower (CPU). "
        "LXC: CPU undecided (at most 7 % slower or 4 % faster)"
    )


def test_without_anything_to_compare_the_title_says_so(made: Made, judged: Analysis) -> None:
    nothing = judged.model_copy(update={"comparisons": (), "environments": ("host",)})
    assert title(nothing).startswith("Nothing to compare")
    emulated = judged.model_copy(update={"comparisons": (), "environments": ("host", "vm"), "emulated": ("vm",)})
    assert title(emulated) == "VM works here, but emulated in software: nothing is compared"


def test_imported_runs_have_no_verdict_whatever_they_show(made: Made) -> None:
    analysis = made(("box", Group.COMPUTE, Verdict.DATA_ONLY), ("box", Group.MEMORY, Verdict.PILOT))
    assert title(analysis, imported=True) == "Box: no verdict, because the runs were imported"
    assert lines_of(analysis, imported=True)[0].word == "no verdict (imported, 4 runs)"


def test_a_substitute_baseline_is_named(made: Made) -> None:
    analysis = made(("container", Group.COMPUTE, Verdict.EQUIVALENT), ("vm", Group.NETWORK, Verdict.SLOWER))
    items = (analysis.comparisons[0], analysis.comparisons[1].model_copy(update={"baseline": "container"}))
    analysis = analysis.model_copy(update={"comparisons": items})
    assert title(analysis).endswith("VM: network (against container) 11 % slower")
    line = lines_of(analysis)[-1]
    assert (line.resource, line.substitute) == ("Network (against container)", True)


def test_metrics_with_different_baselines_have_a_line_each(made: Made) -> None:
    analysis = made(("vm", Group.NETWORK, Verdict.EQUIVALENT), ("vm", Group.NETWORK, Verdict.SLOWER))
    items = (analysis.comparisons[0].model_copy(update={"baseline": "container"}), analysis.comparisons[1])
    lines = lines_of(analysis.model_copy(update={"comparisons": items}))
    assert [(line.baseline, line.standing) for line in lines] == [
        ("host", Standing.SLOWER),
        ("container", Standing.EQUAL),
    ]


def test_what_was_lost_counts(made: Made) -> None:
    """Where one of two metrics has no round with both, "no difference" is true of one of two."""
    analysis = made(("container", Group.COMPUTE, Verdict.EQUIVALENT), ("container", Group.COMPUTE, Verdict.DATA_ONLY))
    gone = {"n": 0, "ratio": None, "low": None, "high": None, "planned": True}
    lost = analysis.comparisons[1].model_copy(update=gone)
    analysis = analysis.model_copy(update={"comparisons": (analysis.comparisons[0], lost)})
    (line,) = lines_of(analysis)
    assert line.word == "no difference in 1 of 2 (within 2 %)"
    assert "CPU (1 of 2 results)" in title(analysis)
    (alone,) = lines_of(analysis.model_copy(update={"comparisons": (lost,)}))
    assert alone.word == "no round has results for both container and host"
    assert title(analysis.model_copy(update={"comparisons": (lost,)})) == "Container: nothing to compare with"


def test_the_control_arm_and_exploratory_metrics_have_no_line(made: Made) -> None:
    analysis = made(("container", Group.COMPUTE, Verdict.SLOWER), ("container", Group.MEMORY, Verdict.SLOWER))
    first, second = analysis.comparisons
    items = (first.model_copy(update={"control": True}), second.model_copy(update={"primary": False}))
    assert lines_of(analysis.model_copy(update={"comparisons": items})) == ()


# --- start-up ------------------------------------------------------------------------------------------------------


@pytest.fixture
def startup(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that measures how nodes start."""
    known = {**benchmarks(), "startup": SimpleNamespace(group="Start-up", metrics=(FIRST, READY, IDLE))}
    monkeypatch.setattr("vtax.report.document.groups.benchmarks", lambda: known)
    monkeypatch.setattr("vtax.report.document.answer.lines.metrics_of", lambda name, _: known[name].metrics)


@pytest.mark.usefixtures("startup")
def test_the_title_says_how_soon_a_node_is_ready() -> None:
    analysis = quick_analysis(quick())
    line = next(line for line in lines_of(analysis) if line.group is Group.START_UP)
    assert line.word == "ready in 0.41 s, host in 0.11 s; an idle node takes 13 MB"
    assert title(analysis).endswith("; ready in 0.41 s")
    assert "start-up" not in title(analysis), "the time is said, not its ratio"
    answer = answer_of(report_input(quick(), analysis))
    assert not [item for item in answer.plotted if item.label == "startup"]


def test_the_subject_is_a_sentence() -> None:
    made = quick(third="podman")
    assert answer_of(report_input(made, quick_analysis(made))).subject.startswith("Container and podman against host: ")


# --- emulated and exploratory --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def report() -> ReportInput:
    made = quick()
    return report_input(made, quick_analysis(made))


def test_emulated_environments_have_a_section_and_no_ratio(report: ReportInput) -> None:
    answer = answer_of(report)
    assert "VM" not in answer.headline
    assert {line.environment for line in answer.lines} == {"container"}
    assert answer.emulated is not None
    assert answer.emulated_text == "VM: works here, but emulated: not compared."
    assert any(row.cells[0].text.startswith("events_rate") for row in answer.emulated.rows)
    text = markdown(report)
    assert "vm / host" not in text
    assert "works here, but emulated: not compared" in html(report)


def test_what_the_audit_finds_in_emulated_environments_limits_nothing(report: ReportInput) -> None:
    blocker = Finding(id="D05", severity=Severity.BLOCKER, message="nfs4 in vm", remedy="r", environment="vm")
    made = quick()
    found = report_input(made, quick_analysis(made, (*made.findings, blocker)))
    assert "D05" not in [limit.row for limit in answer_of(found).limits]
    page = html(found)
    assert page.index('id="emulated"') < page.index("nfs4 in vm"), "only in their own part"
    assert page.count("nfs4 in vm") == 1


def test_exploratory_entries_are_below_the_others_with_intervals_and_no_verdict(report: ReportInput) -> None:
    text = markdown(report).replace("\\", "")
    overview = text[text.index("## Overview") : text.index("\n## CPU")]
    assert overview.index("**Network**") < overview.index("**CPU (exploratory)**")
    rows = [line for line in overview.partition("**CPU (exploratory)**")[2].splitlines() if "hpcc" in line]
    assert rows
    assert all("*exploratory*" in row for row in rows)
    assert not any(word in row for row in rows for word in ("*slower*", "*equivalent*", "*inconclusive*"))


def test_operations_that_a_tool_reads_as_primary_are_in_the_overview(report: ReportInput) -> None:
    """iozone declares its throughput as not primary, and reads that of two operations as primary."""
    trial = next(one for one in report.trials if one.label == "iozone")
    of = {"operation": "write", "file_bytes": "65536"}
    value = ReadValue(metric=IO.name, value=1e9, unit="byte/s", kind=IO.kind, primary=True, labels=of, file="stdout")
    readings = {**report.readings, trial.id: TrialReading(trial=trial.id, values=(value,))}
    wanted = results_of(report.model_copy(update={"readings": readings})).exploratory
    found = {series for series in wanted if series.label == "iozone"}
    assert found
    assert all({**dict(series.labels), **of} == dict(series.labels) for series in found)
    assert not {series for series in results_of(report).exploratory if series.label == "iozone"}


# --- limits --------------------------------------------------------------------------------------------------------


def test_notes_and_advice_are_sentences_in_markdown(report: ReportInput) -> None:
    """What was found and what to do do not run into each other, and commands are code."""
    note = Finding(id="C09", severity=Severity.INFO, message="other programs ran", remedy="stop them: `vtax clean`")
    advice = ("ping: 2 iterations", "two modes cannot be ruled out")
    made = quick()
    analysis = quick_analysis(made, (*made.findings, note)).model_copy(update={"advice": advice})
    text = markdown(report_input(made, analysis))
    assert "- **C09** other programs ran. What to do: stop them: `vtax clean`" in text
    assert "ping: 2 iterations. Two modes cannot be ruled out." in text


def test_each_condition_is_one_line_and_appears_once() -> None:
    made = quick(emulated=False)
    several = [
        Finding(id="C05", severity=Severity.BLOCKER, message=f"{share} % stolen", remedy="a quiet host", environment=n)
        for share, n in ((4, "host"), (5, "container"), (6, "host"))
    ]
    mild = Finding(id="C04", severity=Severity.WARNING, message="shared", remedy="fewer nodes")
    found = report_input(made, quick_analysis(made, (*several, mild)))
    limits = answer_of(found).limits
    many = len(answer_of(found).comparisons)
    assert limits[0].text == f"CPU time stolen in container and host: rules out {many} of {many} comparisons"
    assert [message.text for message in limits[0].messages] == ["5 % stolen", "4 % stolen", "6 % stolen"]
    assert limits[0].remedies == ("a quiet host",)
    assert [limit.row for limit in limits if limit.row] == ["C05", "C04"]
    page = html(found)
    assert [page.count(text) for text in ("4 % stolen", "a quiet host", 'id="finding-C05"')] == [1, 1, 1]


def test_what_rules_out_more_comes_first() -> None:
    made = quick(emulated=False)
    one = Finding(id="A01", severity=Severity.BLOCKER, message="of one", remedy="r", benchmark="hpl")
    all_ = Finding(id="Z01", severity=Severity.BLOCKER, message="of all", remedy="r")
    limits = answer_of(report_input(made, quick_analysis(made, (one, all_)))).limits
    assert [limit.row for limit in limits[:2]] == ["Z01", "A01"]
    assert limits[1].text == "Of one: would rule out 1 comparison as well"


def test_a_blocker_of_nothing_that_is_compared_above_is_not_first() -> None:
    made = quick(emulated=False)
    aside = Finding(id="A01", severity=Severity.BLOCKER, message="in the cache", remedy="r", benchmark="hpcc")
    mild = Finding(id="C04", severity=Severity.WARNING, message="shared", remedy="r")
    limits = answer_of(report_input(made, quick_analysis(made, (aside, mild)))).limits
    assert [limit.row for limit in limits if limit.row] == ["C04", "A01"]
    assert next(limit for limit in limits if limit.row == "A01").text == "In the cache: of no metric above"


def test_undecided_comparisons_say_what_they_exclude(report: ReportInput) -> None:
    limit = next(one for one in answer_of(report).limits if "undecided" in one.text)
    verb = "is" if limit.text.startswith("1 ") else "are"
    assert limit.text.endswith(f"comparisons {verb} undecided, which does not mean equal")
    assert all("at most" in message.text for message in limit.messages)


def test_what_did_not_run_is_a_limit_but_for_emulated_environments(report: ReportInput) -> None:
    """Memory bandwidth that no one measured is a limit of what is said about memory."""
    left_out = ("stream is not run on worker1: no room", "vm is emulated in software here: ...")
    found = report.model_copy(update={"plan": report.plan.model_copy(update={"left_out": left_out})})
    texts = [limit.text for limit in answer_of(found).limits]
    assert texts.count("Stream is not run on worker1: no room") == 1
    assert not any("vm is emulated" in text for text in texts)


def test_the_resolution_is_that_of_the_intervals(judged: Analysis) -> None:
    one = judged.comparisons[0].model_copy(update={"low": 0.81, "high": 1.21, "verdict": Verdict.SLOWER})
    text, more = resolution(judged, [one])
    assert text == "Half of the comparisons cannot show differences below ±22 %"
    assert "the widest is ±22 %" in more
    assert (
        "at least three rounds" in resolution(analysed(rounds([1.0], [1.0])), [one.model_copy(update={"low": None})])[1]
    )
    assert "no comparison is valid" in resolution(
        judged, [one.model_copy(update={"verdict": Verdict.NOT_COMPARABLE})]
    )[1]  # fmt: skip
    assert "nothing to compare" in resolution(judged, [])[1]


@pytest.mark.parametrize(
    ("share", "text"),
    [(0.0123, "±1.2 %"), (3.8, "a factor of 4.8"), (293068.6, "a factor of ten (the noise hides any difference)")],
)
def test_a_width_that_says_nothing_is_said_in_words(share: float, text: str) -> None:
    assert width(share) == text


# --- what would decide ---------------------------------------------------------------------------------------------


def with_study(report: ReportInput, analysis: Analysis, name: str) -> ReportInput:
    study = report.plan.study.model_copy(update={"name": name})
    plan = report.plan.model_copy(update={"study": study})
    return report.model_copy(update={"analysis": analysis, "plan": plan})


def said(report: ReportInput, analysis: Analysis, name: str = "quick") -> tuple[str, ...]:
    return deciding(with_study(report, analysis, name), lines_of(analysis))


def test_what_would_decide_is_a_command_and_its_time(report: ReportInput, made: Made) -> None:
    analysis = made(
        ("container", Group.COMPUTE, Verdict.INCONCLUSIVE), ended="after 6 rounds", round_s=70.0, rounds_complete=6
    )
    near = analysis.comparisons[0].model_copy(update={"new_campaign": (12, 16)})
    analysis = analysis.model_copy(update={"comparisons": (near,)})
    (text,) = said(report, analysis)
    assert text == (
        "To decide CPU in container: `vtax run quick --rounds 16`, about 19 min. "
        "It is a new campaign, because the plan of this one is frozen."
    )
    assert "`vtax run study.toml --rounds 16`" in said(report, analysis, "my-own")[0]


def test_what_no_rounds_would_decide_is_said(report: ReportInput, made: Made) -> None:
    analysis = made(("container", Group.COMPUTE, Verdict.INCONCLUSIVE), ended="after 6 rounds")
    far = analysis.comparisons[0].model_copy(update={"remark": "not reachable within 60 rounds; fix steal first"})
    (text,) = said(report, analysis.model_copy(update={"comparisons": (far,)}))
    assert text == "60 rounds with this noise would not decide CPU in container: fix steal first."
    unexplained = far.model_copy(update={"metric": "other", "remark": "not reachable; no recorded counter explains it"})
    (text,) = said(report, analysis.model_copy(update={"comparisons": (far, unexplained)}))
    assert text == "60 rounds with this noise would not decide CPU in container: fix steal first."


def test_what_is_undecided_next_to_a_claim_can_be_decided_too(report: ReportInput, made: Made) -> None:
    """One of two results is slower, which is what the line says; the other is still undecided."""
    wanted = [("container", Group.NETWORK, word) for word in (Verdict.SLOWER, Verdict.INCONCLUSIVE)]
    analysis = made(*wanted, ended="after 6 rounds", round_s=70.0, rounds_complete=6)
    near = analysis.comparisons[1].model_copy(update={"new_campaign": (8, 10)})
    analysis = analysis.model_copy(update={"comparisons": (analysis.comparisons[0], near)})
    (text,) = said(report, analysis)
    assert text.startswith(
        "To decide network (1 of 2 results) in container: `vtax run quick --rounds 10`, about 12 min."
    )


def test_a_campaign_that_goes_on_is_not_replaced(report: ReportInput, made: Made) -> None:
    analysis = made(
        ("container", Group.COMPUTE, Verdict.INCONCLUSIVE), ended="", rounds_complete=6, rounds_planned=10, round_s=60.0
    )
    (text,) = said(report, analysis)
    assert text.startswith("4 planned rounds may still decide CPU in container, about 4 min: ")
    named = report.model_copy(update={"directory": "campaigns/quick-1"})
    assert said(named, analysis)[0].endswith("`vtax run --resume campaigns/quick-1` continues this campaign.")


def test_a_campaign_that_was_interrupted_early_is_not_replaced(report: ReportInput, made: Made) -> None:
    rounds = {"rounds_complete": 4, "rounds_planned": 6, "round_s": 60.0}
    pilot = made(("container", Group.COMPUTE, Verdict.PILOT), ended="", **rounds)
    (text,) = said(report, pilot)
    assert text.startswith("2 planned rounds may still decide CPU in container, about 2 min: `vtax run --resume ")
    (few,) = said(report, made(("container", Group.COMPUTE, Verdict.PILOT), ended="", **rounds | {"rounds_planned": 5}))
    assert few.startswith("A verdict needs at least 6 rounds: ")


def test_a_pilot_and_a_decided_campaign(report: ReportInput, made: Made) -> None:
    pilot = made(("container", Group.COMPUTE, Verdict.PILOT), round_s=60.0)
    assert said(report, pilot)[0].startswith(
        "A verdict needs at least 6 rounds: `vtax run quick --rounds 6`, about 6 min."
    )
    assert said(report, made(("container", Group.COMPUTE, Verdict.EQUIVALENT))) == ()
    imported = report.model_copy(update={"plan": report.plan.model_copy(update={"origin": Origin.IMPORTED})})
    assert deciding(imported, lines_of(pilot, imported=True))[0].startswith("`vtax run` measures in a way")


# --- other baselines -----------------------------------------------------------------------------------------------


def test_lines_against_another_environment_are_exploratory(report: ReportInput, made: Made) -> None:
    other = made(("vm", Group.COMPUTE, Verdict.SLOWER), baseline="container", environments=("container", "vm"))
    items = tuple(item.model_copy(update={"baseline": "container"}) for item in other.comparisons)
    found = report.model_copy(update={"against": (other.model_copy(update={"comparisons": items}),)})
    (against,) = answer_of(found).against
    assert [(line.environment, line.word, line.substitute) for line in against.lines] == [("vm", "11 % slower", False)]
    page = html(found)
    assert "Against container instead of host (exploratory)" in page
    assert "## Against container (exploratory)" in markdown(found)


def test_the_same_sentences_begin_every_format(report: ReportInput) -> None:
    answer = answer_of(report)
    page, text = html(report), markdown(report).replace("\\", "")
    assert text.startswith(f"# {answer.headline}\n")
    assert answer.headline in page.replace("\u00a0", " ")
    for line in answer.lines:
        assert line.word in text
        assert line.word in page
    for limit in answer.limits:
        assert limit.text in text


def test_a_line_names_what_it_covers(judged: Analysis) -> None:
    lines: tuple[Line, ...] = lines_of(judged)
    covered = [item for line in lines for item in line.comparisons]
    assert covered
    assert len(covered) == len([item for item in judged.comparisons if item.primary and item.ratio is not None])
    assert all(item.environment == line.environment for line in lines for item in line.comparisons)


def test_an_analysis_of_nothing_is_an_answer() -> None:
    made = campaign()
    nothing = analyse((), plan=made.plan, findings=(), trials=())
    answer = answer_of(report_input(made, nothing))
    assert (answer.lines, answer.decide) == ((), ())
    assert answer.headline.startswith("Nothing to compare")


def test_nodes_that_exist_already_limit_what_the_answer_is_about() -> None:
    report = report_input(campaign(("host", "container"), 6, failing=False))
    existing = Capabilities(kind=NodeKind.HOST, separate_nodes=True, existing=True)
    plan = report.plan.model_copy(update={"capabilities": {**report.plan.capabilities, "container": existing}})
    said = limits_of(report.model_copy(update={"plan": plan}), ())[-1]
    assert said.text == "The answer applies to this machine, these nodes, this work and these versions"
    assert "The nodes of container existed before: vtax did not create them anew" in said.messages[0].text
