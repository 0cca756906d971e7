"""The documentation as a site: README.md is its front page, and its links are the table of contents. See scripts/site.

The source directory is that of the repository, so that every link is the one that the files have where they are.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from sphinx.application import Sphinx

EXAMPLE = "docs/example/report"

project = "vtax"
html_title = "vtax"
root_doc = "README"
include_patterns = ["README.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/*.md", f"{EXAMPLE}.md"]
extensions = ["myst_parser"]
myst_heading_anchors = 6  # as GitHub makes them
nitpicky = True
html_theme = "furo"
html_copy_source = False
html_use_index = False
html_show_search_summary = False  # it would fetch pages, which a browser refuses for files
html_show_copyright = False

PAGE = re.compile(r"\]\(([^)#:\s]+)\.md\)")
OF_A_CAMPAIGN = re.compile(r"\[([^\]]*)\]\(\.\./(?:trials|cells)/[^)\s]*\)")


def complete(_app: Sphinx, docname: str, source: list[str]) -> None:
    """The front page has the table of contents; the example of a report has no campaign around it to link to."""
    if docname == root_doc:
        links, _, documentation = source[0].partition("\n## Documentation\n")
        pages = dict.fromkeys(PAGE.findall(documentation) + PAGE.findall(links))
        entries = [f"An example of a report <{page}>" if page == EXAMPLE else page for page in pages]
        source[0] += "\n```{toctree}\n:hidden:\n\n" + "\n".join(entries) + "\n```\n"
    elif docname == EXAMPLE:
        source[0] = OF_A_CAMPAIGN.sub(r"\1", source[0])


def front_page(app: Sphinx, exception: Exception | None) -> None:
    if exception is None:
        shutil.copyfile(Path(app.outdir) / f"{root_doc}.html", Path(app.outdir) / "index.html")


def setup(app: Sphinx) -> None:
    app.connect("source-read", complete)
    app.connect("build-finished", front_page)
