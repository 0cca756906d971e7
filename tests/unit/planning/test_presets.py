"""The presets about one subject take as long as their first lines say, but for `hpc`, whose work depends on CPUs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from vtax.planning.presets import preset
from vtax.planning.study import load

from .test_resuming import LARGE, again, fakes

MINUTES = {"five": 5, "six": 6, "seven": 7, "nine": 9, "ten": 10, "twelve": 12, "sixteen": 16}
STATED = re.compile(r"in about (\w+) minutes")


@pytest.mark.parametrize("name", ["kernel", "storage", "interference", "databases", "web"])
def test_a_preset_takes_as_long_as_it_says(name: str) -> None:
    """On the host and in containers, without the minute that virtual machines need where they are emulated."""
    said = STATED.search(preset(name).splitlines()[0])
    assert said is not None
    study = load(Path(name))
    plan = again(study, LARGE, fakes(study, {"host", "container"}, emulated=False))
    assert 0.75 <= plan.estimate_s / 60 / MINUTES[said[1]] <= 1.05
