"""The report as text for typst, which makes a PDF where there is no browser: answers, ratios, findings, tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vtax.analysis.records import Analysis, Level
from vtax.model.finding import Finding
from vtax.report.document.numbers import interval_text, labels_text, mean_sd, natural, ratio_text
from vtax.report.document.page import page_of
from vtax.report.records import ReportInput
from vtax.units import scale_of

HEAD = """\
#set page(paper: "a4", flipped: true, margin: 1.6cm, numbering: "1 / 1")
#set figure.caption(position: bottom)
#show figure.caption: set text(size: 8pt)
#show figure: set align(left)
#set text(size: 9pt)
#set table(stroke: (x, y) => if y <= 1 { (top: 0.6pt) } else { none }, inset: (x: 4pt, y: 2.5pt))
#show table.cell.where(y: 0): strong
"""


def text(content: str) -> str:
    """A string literal of typst as content: nothing in it is markup."""
    escaped = content.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ").replace("\r", " ")
    return f'#text("{escaped}")'


def source(report: ReportInput, figures: Sequence[tuple[bytes, str]] = (), made: str = "") -> str:
    """The whole document: `figures` are SVG with their captions, `made` says how and what it lacks."""
    page, analysis = page_of(report), report.analysis
    parts = [HEAD, text(f"Study {page.title}"), f"= {text(page.question)}", text(page.subject)]
    if made:
        parts.append(f"#emph[{text(f'About this file: {made}.')}]")
    parts.append("== The answer in short")
    for answer in page.answers:
        said = (f"- #strong[{text(clause.name)}] {text(f'{clause.text}.')}" for clause in answer.clauses)
        parts.append("\n".join((f"#strong[{text(str(answer.group))}]", "", *said)))
    first, stop, rest = page.caution.partition(". ")
    parts += [f"#strong[{text(first + stop)}]{text(rest)}", text(page.resolution), text(page.reading)]
    if figures:
        drawn = "".join(_figure(*one) for one in figures)
        parts.append(f"#page(flipped: false, margin: 1.5cm)[== Ratios\n#columns(2)[{drawn}]]")
    if analysis.findings:
        parts.append("== What the audit says")
        parts += [f"- {text(_told(one))}" for one in analysis.findings]
    parts.append("== Values")
    entries: dict[str, list[Level]] = {}
    for level in analysis.levels:
        entries.setdefault(level.label, []).append(level)
    for entry, levels in entries.items():
        parts += [f"=== {text(entry)}", _levels(levels, analysis)]
    if analysis.failures:
        parts.append("== Failures")
        rows = [(one.trial, str(one.status), one.reason) for one in analysis.failures]
        parts.append(_table(("trial", "status", "reason"), rows))
    return "\n\n".join(parts) + "\n"


def _figure(svg: bytes, caption: str) -> str:
    """A figure as wide as its column, inside the document."""
    drawn = svg.decode().replace("\\", "\\\\").replace('"', '\\"')
    return f'#figure(image(bytes("{drawn}"), format: "svg", width: 8.6cm), caption: [{text(caption)}])\n\n'


def _told(finding: Finding) -> str:
    remedy = f". What to do: {finding.remedy}" if finding.remedy else ""
    return f"{finding.severity} {finding.id}: {finding.message}{remedy}"


def _levels(levels: Sequence[Level], analysis: Analysis) -> str:
    """Mean and deviation in every environment, and the ratio of each to the baseline."""
    series: dict[tuple[str, str], dict[str, Level]] = {}
    for level in levels:
        series.setdefault((level.metric, labels_text(level.labels)), {})[level.environment] = level
    ratios = {
        (item.label, item.metric, labels_text(item.labels), item.environment): item for item in analysis.comparisons
    }
    others = [name for name in analysis.environments if name != analysis.baseline]
    rows = []
    for (metric, where), found in sorted(series.items(), key=lambda item: natural(str(item[0]))):
        one = next(iter(found.values()))
        factor, unit = scale_of(max(abs(level.mean) for level in found.values()), one.unit)
        cells = [f"{metric} {where}".strip(), unit]
        for name in analysis.environments:
            here = found.get(name)
            cells.append("–" if here is None else mean_sd(here.mean / factor, here.sd and here.sd / factor))
        for name in others:
            item = ratios.get((one.label, metric, where, name))
            if item is None:
                cells.append("–")
            elif item.ratio is None:
                cells.append(f"– {item.verdict}")
            else:
                cells.append(f"{ratio_text(item.ratio)}{interval_text(item)} {item.verdict}")
        rows.append(cells)
    head = ["metric", "unit", *analysis.environments, *(f"{name} / {analysis.baseline}" for name in others)]
    return _table(head, rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    cells = ",\n  ".join(f"[{text(cell)}]" for row in (head, *rows) for cell in row)
    return f"#table(\n  columns: {len(head)},\n  {cells},\n)"
