"""The documentation as a site, in a browser that reaches nothing but its files."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from playwright.sync_api import Browser

from browser.conftest import Visit

TOP = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.integration


def test_the_site_is_read_and_searched_without_a_network(browser: Browser, tmp_path: Path) -> None:
    done = subprocess.run((TOP / "scripts" / "site", tmp_path), capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
    pages = {path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*.html")}
    assert {f"docs/{path.stem}.html" for path in (TOP / "docs").glob("*.md")} <= pages

    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(120_000)
    context.route("http*://**", lambda route: route.abort())
    visit = Visit(context.new_page())
    page = visit.page
    page.goto((tmp_path / "index.html").as_uri(), wait_until="load")
    assert page.locator("h1").first.inner_text().startswith("vtax")
    assert visit.js("[...document.images].every(image => image.naturalWidth > 0)")

    page.click(".sidebar-tree a[href='docs/commands.html']")
    page.wait_for_load_state("load")
    assert page.locator("#vtax-seal h2").is_visible()

    page.fill("input.sidebar-search", "allowed_signers")
    page.press("input.sidebar-search", "Enter")
    found = page.locator("ul.search a", has_text="Results that travel").first
    found.wait_for()
    found.click()
    page.wait_for_url("**/docs/sealing.html*")
    assert page.locator("h1").inner_text().startswith("Results that travel")

    assert visit.errors == []
    assert [url for url in visit.requests if not url.startswith((tmp_path.as_uri(), "data:"))] == []
    context.close()
