"""The report as one HTML file: style and figures inside it, nothing fetched, no script."""

from __future__ import annotations

from importlib.resources import files
from urllib.parse import quote

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup

from vtax.report.figures import COLOURS, figure, salted_panels
from vtax.report.page import page_of
from vtax.report.records import ReportInput
from vtax.report.tables import results_of


def render(report: ReportInput) -> str:
    """`report/index.html`, as text. Links to raw files are relative to the directory `report`."""
    results = results_of(report)
    page = page_of(report)
    figures = {
        section.anchor: tuple(
            Markup(figure(results, panel, name)) for name, panel in salted_panels(results, section.group)
        )
        for section in page.sections
    }
    return _templates().get_template("index.html").render(page=page, figures=figures, colours=COLOURS)


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
    environment.filters["file_name"] = file_name
    environment.filters["slug"] = slug
    return environment


def _template(name: str) -> str:
    return (files("vtax.report") / "templates" / name).read_text(encoding="utf-8")


def raw_file(source: str) -> str:
    """The link from the report to a file of the campaign."""
    return "../" + quote(source)


def file_name(source: str) -> str:
    return source.removeprefix("trials/")


def slug(word: str) -> str:
    """A verdict or severity as a class name."""
    return "".join(letter if letter.isalnum() else "-" for letter in word.lower())
