"""The report as one HTML file: style, figures, data and scripts inside it, nothing fetched.

Everything is there without a script: figures are SVG. The scripts add to it, and a content security policy lets
only these run, by their hash.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from importlib.resources import files as resources
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from vtax.report.document.audit_phrases import named
from vtax.report.document.findings import ROW
from vtax.report.document.links import file_name, raw_file
from vtax.report.document.model import Document
from vtax.report.figures.chart import Chart, Trace, slug
from vtax.report.figures.drawn import charts, left_out
from vtax.report.figures.forest import forest, without_ratio
from vtax.report.figures.palette import DASHES, ENVIRONMENTS, SYMBOLS, mark_of, variables
from vtax.report.figures.rug import rugs, ticks
from vtax.report.figures.timeline import timeline
from vtax.report.figures.waterfall import waterfall
from vtax.report.formats import Made

SEAM = re.compile(r"(?<=[a-z])(?<![KMGT]i)(?<!\bk)(?=[A-Z])|(?<=_)(?=[^_])")  # not in MiB, not in kB
TOGETHER = re.compile(r"(?<=\d) (?=(?:[KMGT]i|[kMGT])?B\b|[mµn]?s\b|%)|(?<=,) (?=[^\[\]]*\])")  # `2 MiB`, `[0.9, 1.1]`
CODE = re.compile(r"`([^`]+)`")
SCRIPTS = ("figures.js", "tables.js")
UNSAFE = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}


def files(document: Document, _made: Made) -> Mapping[str, bytes]:
    """`index.html`."""
    return {"index.html": render(document).encode()}


def render(page: Document) -> str:
    """The page, as text. Links to raw files are relative to the directory `report`."""
    report, results = page.source, page.results
    own = _charts(page)
    above = tuple(chart for chart in (waterfall(report.analysis),) if chart is not None)
    happened = tuple(chart for chart in (timeline(report),) if chart is not None)
    every = [*above, *happened, *(chart for several in own.values() for chart in several)]
    overview = forest(results, report.analysis.margin)
    library, script = plotly(), "\n".join(_template(name) for name in SCRIPTS)
    return (
        _templates()
        .get_template("index.html")
        .render(
            page=page,
            forest=overview,
            without_ratio=without_ratio(results),
            rugs=rugs(overview),
            rug_ticks=ticks(overview) if overview else (),
            figures=own,
            left_out=_left_out(page, own),
            above=above,
            happened=happened,
            variables=variables(page.environments),
            policy=policy(library, script),
            data=Markup(embedded(_data(every))),
            library=Markup(library),
            script=Markup(script),
        )
    )


def _charts(page: Document) -> Mapping[str, tuple[Chart, ...]]:
    """The figures of every entry, by the id of its place in the page."""
    return {
        anchor: charts(page.source, page.results, entry, f"fig-{anchor}")
        for section in page.sections
        for anchor, entry in section.anchored()
    }


def _left_out(page: Document, own: Mapping[str, tuple[Chart, ...]]) -> Mapping[str, str]:
    """What to say of figures that are not drawn, by the id of the entry's place in the page."""
    return {
        anchor: left_out(page.source, entry, own[anchor])
        for section in page.sections
        for anchor, entry in section.anchored()
    }


def _data(every: list[Chart]) -> dict[str, Any]:
    """What the scripts read."""
    files: dict[str, int] = {}
    figures = {chart.anchor: chart.live() for chart in every if chart.traces}
    for figure in figures.values():
        figure["data"] = [_numbered(trace, files) for trace in figure["data"]]
    return {
        "figures": figures,
        "files": list(files),
        "symbols": SYMBOLS,
        "dashes": DASHES,
        "colours": len(ENVIRONMENTS),
    }


def _numbered(trace: Trace, files: dict[str, int]) -> Trace:
    """A trace whose points name their raw files by place in `files`, where each is listed once."""
    if "customdata" not in trace:
        return trace
    return {**trace, "customdata": [files.setdefault(name, len(files)) for name in trace["customdata"]]}


def embedded(content: object) -> str:
    """JSON that can be inside a script element: nothing in it can end the element or begin another."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(UNSAFE)


def policy(*scripts: str) -> str:
    """Nothing may be loaded, and no script but these may run. Styles are free, since plotly sets them one by one."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def with_code(text: str) -> Markup:
    """Text in which what is between backticks is set as code; nothing in it is markup."""
    return Markup(CODE.sub(r"<code>\1</code>", str(escape(text))))


def linked(text: str, anchors: Mapping[str, str]) -> Markup:
    """The same, in which the rows of the audit that the page has lead to what they found."""

    def link(found: re.Match[str]) -> str:
        anchor = anchors.get(found[0])
        return f'<a href="#{anchor}">{found[0]}</a>' if anchor else found[0]

    return Markup(re.sub(rf"\b{ROW.pattern}\b", link, with_code(text)))


def breakable(text: str) -> Markup:
    """Text in which a long name may go on in the next line (`RandomlyOrderedRingLatency`, `bogo_ops_rate`), but not a
    number without its unit, and not half of an interval."""
    return Markup("<wbr>").join(SEAM.split(kept(text)))


def kept(text: str) -> str:
    """Text in which a number and its unit, and the two ends of an interval, stay on one line."""
    return TOGETHER.sub("\u00a0", text)


def plotly() -> str:
    """plotly.js as its package has it. It must not hold what would end a script element."""
    text = (resources("plotly") / "package_data" / "plotly.min.js").read_text(encoding="utf-8")
    if "</script" in text or "<!--" in text:
        raise ValueError("plotly.min.js cannot be embedded in a page")
    return text.replace("\r\n", "\n")


def _templates() -> Environment:
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        loader=FunctionLoader(_template),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["raw_file"] = raw_file
    environment.filters["breakable"] = breakable
    environment.filters["kept"] = kept
    environment.filters["within"] = lambda title, label: title.removeprefix(f"{label} · ")
    environment.filters["file_name"] = file_name
    environment.filters["slug"] = slug
    environment.filters["linked"] = linked
    environment.filters["named"] = named
    environment.filters["with_code"] = with_code
    environment.filters["percent"] = lambda share: f"{100 * share:.4g}%"
    environment.filters["svg"] = Markup
    environment.globals["mark_of"] = mark_of
    return environment


def _template(name: str) -> str:
    return (resources("vtax.report.formats") / "templates" / name).read_text(encoding="utf-8")
