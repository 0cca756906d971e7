"""The formats of a report. A new one is a file with `files(document, made)`, and a line below."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from vtax.errors import UsageError

if TYPE_CHECKING:
    from vtax.report.document.model import Document
    from vtax.report.formats import Made


@dataclass(frozen=True)
class Format:
    """`first` names formats that are made before it; `figures` are formats of figures that it includes."""

    name: str
    module: str
    first: tuple[str, ...] = ()
    figures: tuple[str, ...] = ()

    def files(self, document: Document, made: Made) -> Mapping[str, bytes]:
        """The files of the report in this format, by their path below `report/`.

        Raises EnvironmentMissing where a program that it needs is missing.
        """
        found: Mapping[str, bytes] = import_module(self.module).files(document, made)
        return found


FORMATS = (
    Format("html", "vtax.report.formats.html"),
    Format("md", "vtax.report.formats.markdown"),
    Format("xlsx", "vtax.report.formats.xlsx"),
    Format("pdf", "vtax.publishing.pdf", first=("html",)),
    Format("latex", "vtax.report.formats.latex", figures=("pdf",)),
)
FIGURES = ("svg", "pdf", "png")


def names() -> str:
    """The formats as a user names them: `html,md,...`."""
    return ",".join(one.name for one in FORMATS)


def chosen(formats: Iterable[str]) -> tuple[Format, ...]:
    """These formats, and those that they need, in the order in which they are made."""
    wanted = set(formats)
    wanted |= {name for one in FORMATS if one.name in wanted for name in one.first}
    return tuple(one for one in FORMATS if one.name in wanted)


def check(formats: Iterable[str], figures: Iterable[str]) -> None:
    """Raises UsageError for a format that is not known."""
    reports = tuple(one.name for one in FORMATS)
    for kind, wanted, known in (("format", formats, reports), ("figure format", figures, FIGURES)):
        for name in wanted:
            if name not in known:
                raise UsageError(f"unknown {kind} {name!r}", remedy=f"choose from {','.join(known)}")
