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
from functools import partial
from importlib.resources import files as resources
from pathlib import Path

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup, escape

from vtax.figures.render import Stills, library, live
from vtax.figures.theme import mark_of, slug, style_sheet
from vtax.report.document.answer.wording import shown
from vtax.report.document.audit_phrases import named
from vtax.report.document.findings import ROW
from vtax.report.document.links import file_name, raw_file
from vtax.report.document.model import Document
from vtax.report.document.numbers import interval_text, labels_text, ratio_text
from vtax.report.figures.forest import forest, without_ratio
from vtax.report.figures.selection import page_figures
from vtax.report.figures.strips import axis_of
from vtax.report.formats import Made
from vtax.wording import printable

SEAM = re.compile(r"(?<=[a-z])(?<![KMGT]i)(?<!\bk)(?=[A-Z])|(?<=_)(?=[^_])")  # not in MiB, not in kB
TOGETHER = re.compile(r"(?<=\d) (?=(?:[KMGT]i|[kMGT])?B\b|[mµn]?s\b|%)|(?<=,) (?=[^\[\]]*\])")  # `2 MiB`, `[0.9, 1.1]`
CODE = re.compile(r"`([^`]+)`")
SCRIPTS = ("figures.js", "tables.js")
UNSAFE = {ord(letter): f"\\u{ord(letter):04x}" for letter in "<>&\u2028\u2029"}


def files(document: Document, made: Made) -> Mapping[str, bytes]:
    """`index.html`."""
    return {"index.html": render(document, made.cache).encode()}


def render(page: Document, cache: Path | None = None) -> str:
    """The page, as text. Links to raw files are relative to the directory `report`. The figures' script and
    drawings are kept in `cache`."""
    report, results = page.source, page.results
    figures = page_figures(page)
    drawings = Stills(figures.every, cache)
    margin = report.analysis.margin
    vega, script = library(cache), "\n".join(_template(name) for name in SCRIPTS)
    return (
        _templates()
        .get_template("index.html")
        .render(
            page=page,
            forest=forest(results, margin),
            without_ratio=without_ratio(results),
            axis_of=partial(axis_of, margin=margin),
            figures=figures,
            drawings=drawings,
            colours=Markup(style_sheet(page.environments)),
            policy=policy(vega, script),
            data=Markup(embedded(live(figures.every))),
            library=Markup(vega),
            script=Markup(script),
        )
    )


def embedded(content: object) -> str:
    """JSON that can be inside a script element: nothing in it can end the element or begin another."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).translate(UNSAFE)


def policy(*scripts: str) -> str:
    """Nothing may be loaded, and no script but these may run. Styles are free: drawings set them one by one."""
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'" for text in scripts
    )
    return (
        f"default-src 'none'; script-src {hashes}; style-src 'unsafe-inline'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def with_code(text: str) -> Markup:
    """Text in which what is between backticks is set as code; nothing in it is markup."""
    return Markup(CODE.sub(r"<code>\1</code>", str(escape(printable(text)))))


def linked(text: str, anchors: Mapping[str, str]) -> Markup:
    """The same, in which the rows of the audit that the page has lead to what they found."""

    def link(found: re.Match[str]) -> str:
        anchor = anchors.get(found[0])
        return f'<a href="#{anchor}">{found[0]}</a>' if anchor else found[0]

    return Markup(re.sub(rf"\b{ROW.pattern}\b", link, with_code(text)))


def breakable(text: str) -> Markup:
    """Text in which a long name may go on in the next line (`RandomlyOrderedRingLatency`, `bogo_ops_rate`), but not a
    number without its unit, and not half of an interval."""
    return Markup("<wbr>").join(SEAM.split(kept(printable(text))))


def kept(text: str) -> str:
    """Text in which a number and its unit, and the two ends of an interval, stay on one line."""
    return TOGETHER.sub("\u00a0", text)


def _plain(value: object) -> object:
    """Text of others without control characters, which HTML does not allow, and which a terminal obeys when it shows
    the source of the page."""
    return printable(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _templates() -> Environment:
    environment = Environment(
        autoescape=True,
        undefined=StrictUndefined,
        loader=FunctionLoader(_template),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=_plain,
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
    environment.filters["shown"] = shown
    environment.filters["labels"] = labels_text
    environment.filters["ratio"] = lambda item: ratio_text(item.ratio) + interval_text(item)
    environment.globals["mark_of"] = mark_of
    return environment


def _template(name: str) -> str:
    return (resources("vtax.report.formats") / "templates" / name).read_text(encoding="utf-8")
