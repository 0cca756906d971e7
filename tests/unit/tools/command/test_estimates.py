"""What the plan's time counts of an own command, besides its run."""

from __future__ import annotations

import pytest

from builders.synthetic import shape
from vtax.model.nodes import Scope, Target
from vtax.tools.command.benchmark import Command
from vtax.tools.command.params import CommandParams

SERVER = {"command": ["serve"]}
TARGET = Target(scope=Scope.NODE, nodes=shape().nodes[:1], directory="/scratch/x")


@pytest.mark.parametrize(
    ("keys", "trial_s", "setup_s"),
    [
        ({"command": ["work"]}, 5.0, 0.0),
        ({"run": {"command": ["work"], "seconds": 20}}, 20.0, 0.0),
        ({"run": {"command": ["work"], "estimate": 7}, "services": [SERVER]}, 7.5, 0.0),
        ({"command": ["work"], "prepare": [["a"], ["b"]], "cleanup": [["c"]], "setup": [["d"], ["e"]]}, 6.5, 2.0),
        (
            {
                "command": ["work"],
                "prepare": [{"command": ["a"], "estimate": 30}],
                "setup": [["d"], {"command": ["e"], "estimate": "1 min"}],
            },
            35.0,
            61.0,
        ),
    ],
)
def test_setup_preparation_and_services_are_counted(keys: dict[str, object], trial_s: float, setup_s: float) -> None:
    params = CommandParams.model_validate(keys)
    assert Command().estimate_s(params, TARGET) == trial_s
    assert Command().setup_s(params) == setup_s
