"""`make site` fails when a link of the documentation leads nowhere, or a page is in no table of contents."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

TOP = Path(__file__).resolve().parents[2]
README = "# Front\n\n![A dot](docs/dot.svg)\n\n## Documentation\n\n- [A](docs/a.md): [its part](docs/a.md#the-part)\n"
A = "# A\n\n## The part\n\n[Up](../README.md#front), [here](#the-part), [a file](../file.toml)\n"


def built(top: Path, **pages: str) -> tuple[int, str]:
    """Exit code and warnings of a site of two small pages, with more pages in `docs/` or others in their place."""
    source = top / "source"
    (source / "docs").mkdir(parents=True)
    shutil.copyfile(TOP / "docs" / "conf.py", source / "docs" / "conf.py")
    (source / "README.md").write_text(README)
    (source / "file.toml").write_text("x = 1\n")
    (source / "docs" / "dot.svg").write_text('<svg xmlns="http://www.w3.org/2000/svg"/>')
    for name, text in {"a": A, **pages}.items():
        (source / "docs" / f"{name}.md").write_text(text)
    command = (TOP / "scripts" / "site", top / "site", source)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def test_links_that_lead_somewhere_pass(tmp_path: Path) -> None:
    assert built(tmp_path) == (0, "")
    front = (tmp_path / "site" / "index.html").read_text()
    assert 'href="docs/a.html#the-part"' in front
    assert 'class="toctree-l1"><a class="reference internal" href="docs/a.html"' in front


def test_whatever_leads_nowhere_is_an_error(tmp_path: Path) -> None:
    links = (
        "[page](none.md)",
        "[file](../none.toml)",
        "[anchor](#none)",
        "[there](../README.md#none)",
        "![image](none.png)",
    )
    code, said = built(tmp_path, a=A + "".join(f"\n{link}\n" for link in links), b="# B\n")
    assert code == 1
    found = re.findall(r"/docs/(\w\.md(?::\d+)?): WARNING: .* \[(\S+)\]$", said, re.MULTILINE)
    assert sorted(found) == [
        ("a.md:11", "myst.xref_missing"),
        ("a.md:13", "myst.xref_missing"),
        ("a.md:15", "image.not_readable"),
        ("a.md:7", "myst.xref_missing"),
        ("a.md:9", "myst.xref_missing"),
        ("b.md", "toc.not_included"),
    ]


def test_one_anchor_that_is_not_there_is_enough(tmp_path: Path) -> None:
    code, said = built(tmp_path, a=A + "\n[no anchor there](../README.md#none)\n")
    assert (code, said.count("WARNING: ")) == (1, 1)
