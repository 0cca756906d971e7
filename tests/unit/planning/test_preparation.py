"""What is refused before anything starts."""

from __future__ import annotations

from pathlib import Path

import pytest

from builders.small import MACHINE
from fakes.cluster import FakeProvider
from vtax.errors import UsageError
from vtax.model.cluster import Workload
from vtax.model.plan import Plan
from vtax.model.study import EnvironmentSpec
from vtax.planning.plan import make_plan
from vtax.planning.preparation import refuse_no_command
from vtax.planning.study import parse

STUDY = """
name = "own"
rounds = 1
baseline = "host"
[environments.host]
provider = "host"
[nodes]
workers = 1
[image.workload]
from = "docker://example.org/app@sha256:{digest}"
[[benchmarks]]
name = "command"
label = "mine"
nodes = ["worker1"]
{keys}
"""
OWN = Workload(source="docker://x", digest="0" * 64, directory="/x", architecture="amd64", libc="", size_bytes=1)


def planned(top: Path, keys: str) -> Plan:
    study = parse(STUDY.format(digest="0" * 64, keys=keys), "own")
    spec = EnvironmentSpec(name="host", provider="host")
    return make_plan(study.model_copy(update={"environments": (spec,)}), MACHINE, {"host": FakeProvider("host", top)})


@pytest.mark.parametrize(
    ("keys", "missing"),
    [
        ("", True),
        ('command = ["true"]', False),
        ('command = ["true"]\nservices = [{ ready = { port = "{port}" } }]', True),
        ('command = ["true", "--"]', False),
    ],
)
def test_an_image_without_a_command_is_refused_where_one_is_left_to_it(
    tmp_path: Path, keys: str, missing: bool
) -> None:
    plan = planned(tmp_path, keys)
    refuse_no_command(None, OWN)
    refuse_no_command(plan, OWN.model_copy(update={"entry": ("/app",)}))
    if not missing:
        refuse_no_command(plan, OWN)
        return
    with pytest.raises(UsageError, match="mine: there is no command, and the image names none"):
        refuse_no_command(plan, OWN)
