"""A real browser: the machine's own Chromium, driven by Playwright. Where there is none, the tests fail."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

from builders.pages import hostile, html, report_input, whole
from builders.quick import quick, quick_analysis

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
Opened = Callable[..., "Visit"]


class Visit:
    """A page that was opened, and all that happened on it."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.errors: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.errors.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("dialog", lambda dialog: self.errors.append(f"dialog: {dialog.message}"))
        page.on("request", lambda request: self.requests.append(request.url))

    def js(self, expression: str, argument: Any = None) -> Any:
        return self.page.evaluate(expression, argument)

    def open_all(self) -> None:
        """Open every part of the page."""
        self.js("document.querySelectorAll('details').forEach(d => { d.open = true })")

    def draw_all(self) -> None:
        """Scroll through the page until every figure is drawn."""
        self.open_all()
        for anchor in self.js("[...document.querySelectorAll('figure.chart')].map(f => f.id)"):
            self.js("id => document.getElementById(id).scrollIntoView()", anchor)
            self.page.wait_for_function("id => document.getElementById(id).dataset.drawn", arg=anchor)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    found = [path for path in map(shutil.which, NAMES) if path]
    assert found, f"no browser: none of {', '.join(NAMES)}; scripts/bootstrap test installs one"
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found[0], args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages, each in a campaign's directory."""
    made = {}
    made_quick = quick()
    for name, report in (
        ("whole", whole()),
        ("hostile", hostile()),
        ("quick", report_input(made_quick, quick_analysis(made_quick))),
    ):
        made[name] = tmp_path_factory.mktemp(name) / "report" / "index.html"
        made[name].parent.mkdir()
        made[name].write_text(html(report), encoding="utf-8")
    return made


@pytest.fixture
def visit(browser: Browser, files: dict[str, Path]) -> Iterator[Opened]:
    """Open a page: `visit("whole", width=400, dark=True, script=False)`."""
    contexts = []

    def opened(name: str, width: int = 1280, dark: bool = False, script: bool = True, at: str = "") -> Visit:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if dark else "light",
            java_script_enabled=script,
        )
        context.set_default_timeout(120_000)
        contexts.append(context)
        context.route("http*://**", lambda route: route.abort())
        found = Visit(context.new_page())
        found.page.goto(files[name].as_uri() + at, wait_until="load")
        return found

    yield opened
    for context in contexts:
        context.close()
