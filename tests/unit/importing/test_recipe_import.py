"""A published study imported as its recipe says, and the recipes that vtax comes with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from builders.logs import SYSBENCH, faster, put
from vtax.errors import UsageError
from vtax.importing.campaign import import_recipe
from vtax.importing.recipe import read_recipe
from vtax.store import Campaign

TOP = Path(__file__).resolve().parents[3]
RECIPE = """\
title = "A study"
repository = "https://example.org/study"
commit = "0123abcd"
baseline = "host"
[[imports]]
paths = ["results/vm/*.txt"]
environment = "vm"
labels = { condition = "idle" }
[[imports]]
paths = ["results/notes/*.md"]
environment = "host"
[[imports]]
paths = ["results/*-*.txt"]
layout = "results/{environment}-{condition}.txt"
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    files: dict[str, str | bytes] = {
        "results/vm/1.txt": faster(SYSBENCH, "900.00"),
        "results/vm/2.txt": faster(SYSBENCH, "910.00"),
        "results/host-idle.txt": faster(SYSBENCH, "1000.00"),
        "results/notes/readme.md": "nothing that a benchmark prints\n",
        "other/unnamed.txt": faster(SYSBENCH, "1.00"),
    }
    (tmp_path / "recipe.toml").write_text(RECIPE)
    return put(tmp_path / "checkout", files)


def test_a_recipe_imports_what_it_names_and_nothing_else(tmp_path: Path, checkout: Path) -> None:
    directory = tmp_path / "campaign"
    reports = import_recipe(read_recipe(tmp_path / "recipe.toml"), checkout, directory)
    assert [report.taken > 0 for report in reports] == [True, False, True]
    campaign = Campaign.open(directory)
    found = {
        (trial.environment, trial.imported.file, trial.imported.labels["condition"], trial.round)
        for trial in campaign.trials(texts=False)
        if trial.imported
    }
    assert found == {
        ("vm", "1.txt", "idle", 1),
        ("vm", "2.txt", "idle", 2),
        ("host", "host-idle.txt", "idle", 1),
    }
    assert campaign.plan().study.baseline == "host"
    tables = json.loads((directory / "imports.json").read_text())
    assert {table["origin"] for table in tables} == {"https://example.org/study at 0123abcd"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("results/vm/*.txt", "../secret/*", "leads out of the folder"),
        ("results/vm/*.txt", "results/missing/*", "has no files results/missing"),
        ('commit = "0123abcd"', 'commit = "main"', "commit"),
        ('baseline = "host"', 'baseline = "metal"', "nothing of the recipe's baseline 'metal' was read"),
        ("title", "heading", "title: Field required"),
    ],
)
def test_recipes_that_are_wrong_are_refused(tmp_path: Path, checkout: Path, old: str, new: str, message: str) -> None:
    (tmp_path / "recipe.toml").write_text(RECIPE.replace(old, new))
    with pytest.raises(UsageError, match=message):
        import_recipe(read_recipe(tmp_path / "recipe.toml"), checkout, tmp_path / "campaign")


@pytest.mark.parametrize("name", ["felter-2014", "firecracker-2020"])
def test_the_recipes_that_come_with_vtax_can_be_read(name: str) -> None:
    recipe = read_recipe(TOP / "examples" / "recipes" / f"{name}.toml")
    assert recipe.repository.startswith("https://github.com/")
    page = (TOP / "docs" / "published-audits.md").read_text()
    assert f"at `{recipe.commit}`" in page
    assert f"## {recipe.title}" in page
