"""The report: says no more than the data, keeps hostile text as text, fetches nothing."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from typing import Any
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest

from builders.hostile import NAME, renamed
from builders.measurements import analysed, rounds
from builders.pages import html, markdown
from builders.synthetic import Campaign, campaign, plan
from vtax.analysis.analyse import analyse
from vtax.analysis.records import Analysis, Level
from vtax.figures.bars import Topic, bars
from vtax.figures.figure import Figure
from vtax.figures.render import still
from vtax.model.cluster import CellRecord, NodeFacts
from vtax.model.finding import Finding, Severity
from vtax.model.measurement import Measurement
from vtax.model.metric import Kind
from vtax.model.trial import Status
from vtax.report.document.cells import by_means
from vtax.report.document.compose import document_of
from vtax.report.document.facts import fact_text, matched, ranges
from vtax.report.document.groups import Group, group_of
from vtax.report.document.matrices import matrices, matrix_table
from vtax.report.document.numbers import interval_text, labels_text, mean_sd, natural, ratio_text
from vtax.report.document.results import results_of
from vtax.report.document.setup import plan as plan_table
from vtax.report.document.tables import benchmark_table, overview
from vtax.report.figures.selection import figures_of, page_figures
from vtax.report.figures.topics import topics
from vtax.report.formats.html import breakable, embedded, kept
from vtax.report.formats.markdown import escape, fenced
from vtax.report.records import ReportInput

MOST_BYTES = 1_500_000  # of a page, without its data
HOSTILE = "<script>alert('x')</script><img src=x onerror=y>|`*[a](http://evil.example)_$x^{$\x00&amp;"
FETCHING = {"src", "srcset", "data", "poster", "action", "formaction", "background", "ping", "manifest"}
VOID = {"meta", "br", "hr", "img", "input", "link", "col", "wbr"}


class Page(HTMLParser):
    """Tags, attributes, text; complains about tags that do not nest."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.words: list[str] = []
        self.links: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


def report_input(made: Campaign, analysis: Analysis | None = None, **more: Any) -> ReportInput:
    found = analysis or analyse(made.measurements, plan=made.plan, findings=made.findings, trials=made.trials)
    meanings: dict[str, dict[str, str]] = {"hpcc": {"HPL": "solving a dense system"}}
    return ReportInput(
        analysis=found,
        plan=made.plan,
        cells=made.cells,
        trials=made.trials,
        versions={"hpcc": "1.5.0-3"},
        host_facts=made.cells[0].host_facts,
        meanings=meanings,
        **more,
    )


@pytest.fixture(scope="module")
def pilot() -> ReportInput:
    return report_input(campaign(("host", "container", "vm"), 3))


@pytest.fixture(scope="module")
def pilot_html(pilot: ReportInput) -> str:
    return html(pilot)


@pytest.fixture(scope="module")
def judged() -> ReportInput:
    return report_input(campaign(("host", "container"), 6, failing=False))


def with_text(text: str) -> ReportInput:
    """A campaign in which every free text is `text`."""
    made = renamed(campaign(("host", NAME), 3), text)
    measurements = tuple(
        item.model_copy(update={"metric": text, "label": text, "labels": {**item.labels, text: text}})
        if item.metric == "rtt_avg"
        else item
        for item in made.measurements
    )
    finding = Finding(id=text, severity=Severity.BLOCKER, message=text, remedy=text, environment="vm", benchmark="x")
    trials = tuple(t.model_copy(update={"failure": text, "status": Status.FAILED}) for t in made.trials[:1])
    cell = CellRecord(
        cell="cell",
        environment="box",
        round=1,
        instance=1,
        status=Status.FAILED,
        failure=text,
        started=1.0,
        provision_s=1.0,
        commands=((text, text),),
        facts=(NodeFacts(node=text, values={text: text, "kernel": text, "versions": {text: text}}),),
        host_facts={text: text},
    ).model_copy(update={"cell": text, "environment": text})
    analysis = analyse(measurements, plan=made.plan, findings=[finding], trials=trials)
    analysis = analysis.model_copy(update={"campaign": text})
    return ReportInput(
        analysis=analysis,
        plan=made.plan,
        cells=(cell,),
        trials=trials,
        versions={text: text},
        host_facts={text: text},
        meanings={"ping": {text: text}},
    )


def test_three_rounds_are_a_pilot_and_say_so(pilot_html: str) -> None:
    text = Page(pilot_html).text
    assert "Container and vm: no verdict after 3 rounds, 6 are needed" in text
    assert "no verdict (3 rounds of at least 6)" in text
    badges = set(re.findall(r'class="badge ([^"]+)"', pilot_html))
    assert badges == {"pilot-only", "data-only", "equal", "different", "partly-unknown", "unknown", "warning"}


def test_six_rounds_get_verdicts(judged: ReportInput) -> None:
    text = Page(html(judged)).text
    assert "6 are needed" not in text
    assert "There is at most a 5\u00a0% chance that any “faster” or “slower” is false" in text.replace(
        "a 5 %", "a 5\u00a0%"
    )
    assert "slower" in {item.verdict for item in judged.analysis.comparisons}


def test_the_page_fetches_nothing_and_runs_only_its_own_scripts(pilot_html: str) -> None:
    page = Page(pilot_html)
    assert not {"link", "iframe", "object", "embed", "img", "form", "base"} & set(page.tags)
    scripts = re.findall(r"<script([^>]*)>(.*?)</script>", pilot_html, re.DOTALL)
    assert [kind for kind, _ in scripts] == [
        ' type="application/json" id="data"',
        ' type="text/plain" id="library"',
        "",
    ]
    policy = unescape(next(value for _, name, value in page.attributes if name == "content"))
    digests = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for _, text in scripts[1:]]
    assert policy.startswith("default-src 'none'; script-src 'sha256-" + digests[0])
    assert f"'sha256-{digests[1]}'; style-src 'unsafe-inline'; img-src data:;" in policy
    assert not [name for _, name, _ in page.attributes if name in FETCHING or name.startswith("on")]
    references = [value for _, name, value in page.attributes if name == "href"]
    own = ("../cells/", "../study.toml", "../plan.json", "../analysis.json")
    assert all(value.startswith(("#", "../trials/", *own)) for value in references)
    written = re.sub(r"<script.*?</script>", "", pilot_html, flags=re.DOTALL)
    assert "http:" not in written
    assert "https:" not in written
    assert "@import" not in written
    assert not re.search(r"url\((?!#)", written)  # only to parts of the same drawing


def test_a_page_without_its_data_is_small(judged: ReportInput) -> None:
    """Style, scripts, the drawing library and the text; not the drawings and what the script draws from."""
    rest = re.sub(r'<svg.*?</svg>|<script type="application/json".*?</script>', "", html(judged), flags=re.DOTALL)
    assert "vegaEmbed" in rest
    assert len(rest.encode()) < MOST_BYTES


def test_ids_are_unique_and_references_resolve(pilot_html: str) -> None:
    page = Page(pilot_html)
    ids = [value for _, name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    targets = {value[1:] for _, name, value in page.attributes if name == "href" and value.startswith("#")}
    assert targets <= set(ids)


def test_every_raw_file_of_a_number_is_linked(pilot: ReportInput, pilot_html: str) -> None:
    linked = {unquote(value) for _, name, value in Page(pilot_html).attributes if name == "href"}
    sources = {file for level in pilot.analysis.levels for cell in level.cells for file in cell.sources}
    assert {f"../{file}" for file in sources} <= linked


def test_the_page_shows_numbers_from_the_analysis(judged: ReportInput) -> None:
    text = Page(html(judged)).text
    level = next(level for level in judged.analysis.levels if level.metric == "HPL" and level.environment == "host")
    found = next(item for item in judged.analysis.comparisons if item.metric == "HPL")
    assert level.sd is not None
    assert found.ratio is not None
    assert mean_sd(level.mean / 1e9, level.sd / 1e9) in text
    assert f"{found.ratio:.3f} [{found.low:.3f}, {found.high:.3f}]" in text
    for words in ("solving a dense system", "N = 16128, NB = 192, P = 2, Q = 2", "5f" * 32, "1.5.0-3", "docker run -d"):
        assert words in text


@pytest.mark.parametrize("answer", ["yes", "no", "unknown"])
def test_whether_the_plan_was_frozen_is_told_from_the_hashes(pilot: ReportInput, answer: str) -> None:
    table = plan_table(pilot.model_copy(update={"plan_frozen": answer}))
    rows = {row.cells[0].text: row.cells[1].text for row in table.rows}
    assert rows["plan frozen before the first run"] == answer
    assert rows["sha256 of the plan"] == pilot.plan.sha256


def test_findings_come_before_the_numbers_that_they_touch(pilot_html: str) -> None:
    text = Page(pilot_html).text
    finding = text.index("The host is itself a virtual machine; results do not transfer")
    assert text.index("What limits this answer") < finding < text.index("Raw files of")
    assert "What to do: run the campaign on bare metal" in text


def test_a_figure_of_software_emulation_that_was_allowed_says_so_itself() -> None:
    made = campaign(("host", "container"), 6)
    allowed = Finding(id="T04", severity=Severity.WARNING, message="m", remedy="r", environment="container")
    plain = analyse(made.measurements, plan=made.plan, findings=[], trials=made.trials)
    found = analyse(made.measurements, plan=made.plan, findings=[allowed], trials=made.trials)
    caveat = "software emulation, not virtualization (T04)"
    assert [item.verdict for item in found.comparisons] == [item.verdict for item in plain.comparisons]
    assert all(caveat in item.remark for item in found.comparisons)
    assert not any(caveat in item.remark for item in plain.comparisons)
    first = found.comparisons[0]
    assert caveat in Page(html(report_input(made, found))).text
    lines = markdown(report_input(made, found)).splitlines()
    rows = [line for line in lines if line.startswith("|") and f"{first.ratio:.3f} \\[" in line]
    assert rows
    assert all(caveat in row for row in rows), "beside the number"


def test_failures_are_listed_with_their_reason(pilot: ReportInput, pilot_html: str) -> None:
    assert "r03-vm-ping-1 timed out no answer within 32 s" in Page(pilot_html).text
    assert "| r03-vm-ping-1 | timed out | no answer within 32 s |" in markdown(pilot)


def test_a_blocker_leaves_nothing_to_compare() -> None:
    made = campaign(("host", "container"), 6)
    blocker = Finding(id="T04", severity=Severity.BLOCKER, message="software emulation", remedy="use KVM")
    found = analyse(made.measurements, plan=made.plan, findings=[blocker], trials=made.trials)
    text = Page(html(report_input(made, found))).text
    assert "not comparable" in text.lower()
    assert "blocker Software emulation: rules out" in text


def test_hostile_text_stays_text_in_html() -> None:
    text = html(with_text(HOSTILE))
    page = Page(text)
    assert page.tags.count("script") == 3
    assert "img" not in page.tags
    assert "alert('x')" in page.text
    assert [value for _, name, value in page.attributes if name == "href" and not value.startswith(("#", "../"))] == []
    assert [name for _, name, _ in page.attributes if name.startswith("on")] == []


def test_data_cannot_end_its_script_element() -> None:
    text = embedded({"name": "</script><!--\u2028&"})
    assert text == '{"name":"\\u003c/script\\u003e\\u003c!--\\u2028\\u0026"}'
    assert json.loads(text) == {"name": "</script><!--\u2028&"}


def test_hostile_text_stays_text_in_markdown() -> None:
    text = markdown(with_text(HOSTILE))
    outside = re.sub(r"^(`{3,})\n.*?^\1$", "", text, flags=re.MULTILINE | re.DOTALL)
    assert "<script" not in outside
    assert "<img" not in outside
    assert not re.search(r"(?<!\\)\]\(http", outside)
    tables = [line for line in outside.splitlines() if line.startswith("|")]
    widths = [len(re.findall(r"(?<!\\)\|", line)) for line in tables]
    heads = [place - 1 for place, line in enumerate(tables) if line.startswith("| ---")]
    assert len(heads) > 10
    for head, after in zip(heads, [*heads[1:], len(tables)], strict=True):
        assert len(set(widths[head:after])) == 1, tables[head]  # no text has opened or closed a cell


def test_markdown_has_the_same_verdicts_and_links(pilot: ReportInput) -> None:
    text = markdown(pilot)
    assert "*pilot only*" in text
    assert re.search(r"\]\(\.\./trials/r01-host-hpcc-1/step0-master\.stdout\)", text)
    assert text.count("# ") >= 10


def test_a_page_of_nothing_says_that_there_is_nothing() -> None:
    made = Campaign(plan(), (), (), (), ())
    text = Page(html(report_input(campaign(), analyse((), plan=made.plan, findings=(), trials=())))).text
    assert "Nothing to compare" in text


def every_topic(report: ReportInput) -> list[Topic]:
    results = results_of(report)
    return [
        topic
        for section in document_of(report).sections
        for entry in section.entries
        for topic in topics(results, entry.series, suite=figures_of(entry.benchmark).suite)
    ]


def bars_of(report: ReportInput, topic: Topic) -> Figure:
    results = results_of(report)
    return bars(results.levels, results.environments, topic, "x")


def test_figures_are_the_same_every_time_and_have_a_name_each(pilot: ReportInput) -> None:
    made, again = (page_figures(document_of(pilot)).every for _ in range(2))
    assert made == again
    assert len({one.name for one in made}) == len(made) > 10
    assert all(one.alt and one.data for one in made)


def test_a_figure_of_bars_has_one_unit(pilot: ReportInput) -> None:
    results = results_of(pilot)
    for topic in every_topic(pilot):
        assert {results.first(series).unit for _, series in topic.categories} == {topic.unit}


def test_values_far_apart_get_a_logarithmic_axis() -> None:
    report = report_input(campaign(("host", "vm"), 3))
    made = {topic.title: bars_of(report, topic) for topic in every_topic(report)}
    far, near = made["hpcc · RandomlyOrderedRingLatency · workers"], made["ping · rtt_avg"]
    assert str(far.x.scale) == "log"
    assert "logarithmic" in far.x.title
    assert str(near.x.scale) == "linear"
    assert "logarithmic" not in near.x.title


def test_every_round_is_a_point(pilot: ReportInput) -> None:
    figure = bars_of(pilot, next(topic for topic in every_topic(pilot) if "sysbench-cpu" in topic.title))
    drawn = list(ElementTree.fromstring(still(figure)).iter("use"))
    assert len(drawn) == 3 * 3  # three environments, three rounds each
    levels = [level for level in pilot.analysis.levels if level.metric == "events_rate"]
    values = sorted(float(f"{cell.value:.5g}") for level in levels for cell in level.cells)
    assert sorted(float(row["value"] or 0.0) for row in figure.of("run")) == values


def test_the_overview_has_a_row_for_each_primary_metric_or_a_range(pilot: ReportInput) -> None:
    rows = [row for row in overview(results_of(pilot)).rows if not row.heading]
    names = [row.cells[0].text for row in rows]
    assert names[:2] == ["HPL (Gflop/s)", "events_rate (1/s)"]
    ranges_of_sizes = [row for row in rows if "8 rows in the table below" in row.cells[0].note]
    assert len(ranges_of_sizes) == 3  # one for each operation of iozone
    assert all(" to " in row.cells[1].text for row in ranges_of_sizes)


def test_sizes_become_a_matrix(pilot_html: str) -> None:
    text = Page(pilot_html).text
    assert "record 4 KiB 64 KiB 1 MiB file 64 KiB" in text


def test_what_differs_is_said_in_words(pilot: ReportInput) -> None:
    rows = {row.cells[0].text: row for row in matched(pilot).rows}
    assert [cell.text for cell in rows["kernel"].cells[2:5]] == ["6.12.9", "6.12.9", "6.12.12"]
    assert rows["kernel"].cells[-1].verdict == "different"
    assert rows["C library"].cells[-1].verdict == "equal"
    assert [cell.text for cell in rows["CPU quota"].cells[2:5]] == ["none"] * 3
    assert rows["cgroup version"].cells[2].text == "unknown"
    assert rows["memory limit"].cells[1].text == "2 GiB"
    assert rows["CPUs allowed"].cells[1].text == "master 0-1; worker1 2-3; worker2 4-5"


def a_level(benchmark: str, metric: str, stressor: str = "") -> Level:
    made = rounds([1.0], [1.0], metric=metric)
    item: Measurement = made[0].model_copy(update={"benchmark": benchmark, "labels": {"stressor": stressor}})
    return analysed([item]).levels[0]


@pytest.mark.parametrize(
    ("benchmark", "metric", "stressor", "group"),
    [
        ("hpcc", "HPL", "", Group.COMPUTE),
        ("hpcc", "MPIFFT", "", Group.COMPUTE),
        ("hpcc", "StarSTREAM_Triad", "", Group.MEMORY),
        ("hpcc", "PTRANS", "", Group.MEMORY),
        ("hpcc", "MPIRandomAccess_LCG", "", Group.MEMORY),
        ("hpcc", "AvgPingPongLatency", "", Group.NETWORK),
        ("hpcc", "RandomlyOrderedRingBandwidth", "", Group.NETWORK),
        ("stress-ng", "bogo_ops_rate_real", "vm", Group.MEMORY),
        ("stress-ng", "bogo_ops_rate_real", "hdd", Group.STORAGE),
        ("stress-ng", "bogo_ops_rate_real", "unheard-of", Group.OTHER),
        ("iozone", "throughput", "", Group.STORAGE),
        ("my-own", "speed", "", Group.OTHER),
    ],
)
def test_metrics_belong_to_a_part_of_the_machine(benchmark: str, metric: str, stressor: str, group: Group) -> None:
    assert group_of(a_level(benchmark, metric, stressor)) is group


@pytest.mark.parametrize(
    ("mean", "sd", "text"),
    [
        (5.1283, 0.0134, "5.128 ± 0.013"),
        (9998.15, 0.7, "9,998.15 ± 0.70"),
        (75.651, 2.98, "75.7 ± 3.0"),
        (1234.0, 120.0, "1,234 ± 120"),
        (5.0, None, "5.000"),
        (0.0, 0.0, "0"),
        (0.0, 0.5, "0.00 ± 0.50"),
    ],
)
def test_mean_and_deviation_share_their_decimals(mean: float, sd: float | None, text: str) -> None:
    assert mean_sd(mean, sd) == text


def test_words_for_numbers_and_labels() -> None:
    assert [ratio_text(value) for value in (0.98765, 12.3456, 0.00123456)] == ["0.988", "12.3", "0.00123"]
    assert labels_text({"target": "a-b", "client": "a", "server": "b"}) == "a → b"
    assert (
        labels_text({"target": "a", "node": "a", "record_bytes": "4096", "kind": "read"})
        == "a, kind read, record 4 KiB"
    )
    assert sorted(["worker10", "worker2"], key=natural) == ["worker2", "worker10"]
    assert ranges((4, 0, 1)) == "0-1,4"
    assert fact_text("memory_limit_bytes", 2**31) == "2 GiB"
    assert fact_text("virtualization", []) == "none"
    assert fact_text("odd", {"a": None}) == '{"a": null}'


def test_markdown_escapes() -> None:
    assert escape("a|b\n<i>*c*") == r"a\|b &lt;i&gt;\*c\*"
    assert fenced("x\n````\ny").startswith("`````\n")


def test_the_ratio_of_the_means_stands_beside_that_of_typical_runs(judged: ReportInput) -> None:
    item = next(one for one in judged.analysis.comparisons if one.mean_ratio is not None)
    text = Page(html(judged)).text.replace("\u00a0", " ")
    assert f"by means {ratio_text(item.mean_ratio or 0)}" in text
    assert by_means(item.model_copy(update={"mean_low": 0.9, "mean_high": 1.25})).endswith(" [0.900, 1.250]")
    assert by_means(item.model_copy(update={"mean_ratio": None})) == ""


def test_a_proportion_is_a_difference_in_the_tables() -> None:
    made = campaign()
    items = rounds([0.0] * 3, [0.25] * 3, metric="lost", kind=Kind.PROPORTION, unit="1")
    text = Page(html(report_input(made, analysed(items)))).text
    assert "+0.25 difference" in text


def test_long_names_may_break_and_stay_text() -> None:
    assert breakable("RandomlyOrderedRingLatency (µs)") == "Randomly<wbr>Ordered<wbr>Ring<wbr>Latency (µs)"
    assert breakable("bogo_ops_rate") == "bogo_<wbr>ops_<wbr>rate"
    assert breakable("a<B>_x") == "a&lt;B&gt;_<wbr>x"


def test_a_number_stays_with_its_unit_and_an_interval_in_one_line() -> None:
    assert breakable("2 MiB") == "2\u00a0MiB"
    assert breakable("100 kB, 16 GiB") == "100\u00a0kB, 16\u00a0GiB"
    assert breakable("0.984 [0.962, 1.007]") == "0.984 [0.962,\u00a01.007]"
    assert kept("3 rounds, 1.5 ms, 43 % of peak") == "3 rounds, 1.5\u00a0ms, 43\u00a0% of peak"


def test_what_all_rows_share_is_said_once(judged: ReportInput) -> None:
    results = results_of(judged)
    pairs = [series for series in results.levels if series.metric == "rtt_avg"]
    table = benchmark_table(results, pairs, {})
    assert table is not None
    assert len(pairs) > 1
    assert "All rows" not in table.note  # every pair is another place
    own = [series for series in results.levels if series.label == "hpcc"]
    table = benchmark_table(results, own, {})
    assert table is not None
    assert table.note == "All rows: workers."
    assert not any("workers" in row.cells[0].note for row in table.rows)


def test_one_dimension_has_one_unit_in_a_table() -> None:
    """80 µs, 150 µs and 2.9 ms can be read against each other in one unit; 5 s and 2 µs cannot."""

    def names(**values: float) -> list[str]:
        items = [
            item
            for metric, value in values.items()
            for item in rounds([value] * 3, [value] * 3, metric=metric, kind=Kind.COST, unit="s")
        ]
        results = results_of(report_input(campaign(), analysed(items)))
        table = benchmark_table(results, list(results.levels), {})
        assert table is not None
        return [row.cells[0].text for row in table.rows]

    assert names(rtt_min=80e-6, rtt_avg=150e-6, rtt_max=2.9e-3) == ["rtt_avg (µs)", "rtt_max (µs)", "rtt_min (µs)"]
    assert names(long=5.0, short=2e-6) == ["long (s)", "short (µs)"]


def test_operations_become_a_matrix_where_there_is_one_file_size(pilot: ReportInput) -> None:
    """Record sizes are columns; a cell has the deviation, the interval and the mark of the verdict; n is told once."""
    results = results_of(pilot)
    own = [
        series
        for series in results.levels
        if series.benchmark == "iozone" and dict(series.labels)["file_bytes"] == str(2**20)
    ]
    (matrix,) = matrices(own)
    assert (matrix.outer, matrix.inner) == ("operation", "record_bytes")
    table = matrix_table(results, matrix)
    assert [column.title for column in table.columns] == ["record", "4 KiB", "64 KiB", "1 MiB"]
    assert table.title.endswith("file 1 MiB")
    assert [row.cells[0].text for row in table.rows if row.heading] == ["write", "read", "random read"]
    assert "over 3 rounds; below it the performance relative to host" in table.note
    assert "(· pilot only)" in table.note
    first = next(row for row in table.rows if not row.heading and row.cells[0].text == "container")
    series = next(one for one in own if dict(one.labels)["operation"] == "write")
    item, level = results.comparisons[series]["container"], results.levels[series]["container"]
    assert first.cells[1].text == mean_sd(level.mean / 1e9, None if level.sd is None else level.sd / 1e9)
    assert first.cells[1].note == f"{ratio_text(item.ratio or 0)}{interval_text(item)}\u00a0·"


def test_a_cell_of_a_matrix_says_its_own_number_of_rounds(pilot: ReportInput) -> None:
    results = results_of(pilot)
    (matrix, *_) = matrices([series for series in results.levels if series.benchmark == "iozone"])
    first = matrix.members[0]
    fewer = {name: level.model_copy(update={"n": 2}) for name, level in results.levels[first].items()}
    changed = replace(results, levels={**results.levels, first: fewer})
    table = matrix_table(changed, matrix)
    assert "3 rounds unless a cell says otherwise" in table.note
    said = [cell for row in table.rows for cell in row.cells if cell.note.endswith("n\u00a02")]
    assert len(said) == len(results.environments)


def test_figures_inside_a_section_do_not_repeat_its_name(judged: ReportInput) -> None:
    titles = re.findall(r"<figcaption><strong>(.*?)</strong>", html(judged))
    assert titles
    assert not [title for title in titles if title.startswith("hpcc")]
