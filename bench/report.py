"""What the report of 100,000 measurements costs: rendering, memory, size, and opening it in a browser.

    python bench/report.py [--json] [--check] [--repeat N]

Three environments, a grid of file and record sizes for each operation of iozone, local and shared, as the synthetic
campaign of the tests has them; the analysis is made before and left out. Opening is timed in Chromium from the start of
the navigation until the page stands and answers: `load` event, two frames after it, and the first idle moment after
these; it is the median over fresh browsers, the slowest is printed next to it. Without Chromium that row is left out.
`--check` exits with 1 when a goal is missed. Times are those of a busy machine when its load is not near 0: it is
printed next to them.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from builders import synthetic
from vtax.analysis.analyse import analyse
from vtax.figures.render import library
from vtax.model.nodes import Scope
from vtax.publishing import pdf
from vtax.report.document.compose import document_of
from vtax.report.formats import html
from vtax.report.records import ReportInput

OPERATIONS = (
    *("write", "rewrite", "read", "reread", "random_read", "random_write", "backward_read", "record_rewrite"),
    *("stride_read", "fwrite", "frewrite", "fread", "freread"),
)
SIZES = tuple(2**power for power in range(16, 29))
RECORDS = tuple(2**power for power in range(12, 25))
ENVIRONMENTS = ("host", "container", "vm")
ROUNDS = 10
FILE_SYSTEMS = ("local", "shared")


@dataclass(frozen=True)
class Row:
    name: str
    measured: float
    goal: float
    unit: str


def grid(places: Sequence[str]) -> tuple[synthetic.Series, ...]:
    """Every size of file and record that iozone's automatic mode takes, for each operation on some file systems."""
    return tuple(
        synthetic.series(
            synthetic.IO.model_copy(update={"primary": operation in ("write", "read")}),
            5e8 * (1 + 0.1 * step),
            {
                "operation": operation,
                "file_bytes": str(size),
                "record_bytes": str(record),
                "filesystem": place,
                "node": "worker1",
            },
            container=-0.05,
            vm=-0.4,
        )
        for place in places
        for operation in OPERATIONS
        for size in SIZES
        for step, record in enumerate(RECORDS)
        if record <= size
    )


def content(rounds: int) -> tuple[ReportInput, int]:
    """What the report is made from, and how many measurements are in it."""
    made = synthetic.campaign(ENVIRONMENTS, rounds)
    analysis = analyse(made.measurements, plan=made.plan, findings=made.findings, trials=made.trials)
    facts = made.cells[0].host_facts
    report = ReportInput(analysis=analysis, plan=made.plan, cells=made.cells, trials=made.trials, host_facts=facts)
    return report, len(made.measurements)


def render_s(report: ReportInput) -> tuple[float, str]:
    """Processor time of one rendering, s, and the page."""
    gc.collect()
    start = time.process_time()
    page = html.render(document_of(report))
    return time.process_time() - start, page


SETTLED = """addEventListener("load", () => requestAnimationFrame(() => requestAnimationFrame(() =>
    requestIdleCallback(() => { window.settled = performance.now() }))))"""


def opening_s(page: Path, program: str, repeat: int) -> list[float]:
    """From the start of the navigation until the page stands and answers, s, in fresh browsers."""
    from playwright.sync_api import sync_playwright

    times = []
    with sync_playwright() as play:
        for _ in range(repeat):
            browser = play.chromium.launch(executable_path=program, args=["--no-sandbox"])
            tab = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
            tab.add_init_script(SETTLED)
            tab.goto(page.as_uri(), wait_until="load")
            tab.wait_for_function("() => window.settled")
            times.append(float(tab.evaluate("window.settled")) / 1000)
            browser.close()
    return times


def rows(repeat: int) -> list[Row]:
    quick, some = content(3)
    quick_s, _ = render_s(quick)
    usual = synthetic.WORK
    synthetic.WORK = {**usual, ("iozone", "iozone-local", Scope.NODE): grid(FILE_SYSTEMS[:1])}
    half, fewer = content(ROUNDS)  # as many rounds, or the larger one alone would be drawn by its quartiles
    half_s, _ = render_s(half)
    synthetic.WORK = {**usual, ("iozone", "iozone-local", Scope.NODE): grid(FILE_SYSTEMS)}
    report, count = content(ROUNDS)
    whole_s, page = render_s(report)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    script = len(library().encode())
    found = [
        Row(f"HTML report of {some:,} measurements, processor, with imports and templates", quick_s, 3, "s"),
        Row(f"HTML report of {count:,} measurements, processor", whole_s, 10, "s"),
        Row(f"{count / fewer:.2f} times the measurements, in as many rounds", whole_s / half_s, 2.2, "times the time"),
        Row("largest resident set, with the analysis", peak, 1, "GiB"),
        Row("size of the page without the script of its figures", (len(page.encode()) - script) / 1e6, 3, "MB"),
    ]
    if program := pdf.browser():
        with tempfile.TemporaryDirectory() as name:
            path = Path(name) / "index.html"
            path.write_text(page, encoding="utf-8")
            times = opening_s(path, program, repeat)
        slowest = f"opening it in Chromium until it stands (of {repeat}; slowest {max(times):.2f} s)"
        found.append(Row(slowest, statistics.median(times), 2, "s"))
    return found


def main() -> int:
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--json", action="store_true", help="print the results as JSON")
    arguments.add_argument("--check", action="store_true", help="exit with 1 when a goal is missed")
    arguments.add_argument("--repeat", type=int, default=5, help="how often the page is opened")
    options = arguments.parse_args()
    measured = rows(options.repeat)
    if options.json:
        print(json.dumps([row.__dict__ for row in measured], indent=2))
    else:
        for row in measured:
            print(f"{row.name}: {row.measured:.2f} {row.unit} (goal: at most {row.goal:g})")
        print(f"load of the machine over one minute: {os.getloadavg()[0]:.2f}")
    return 1 if options.check and any(row.measured > row.goal for row in measured) else 0


if __name__ == "__main__":
    sys.exit(main())
