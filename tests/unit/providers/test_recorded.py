"""What a stored plan says about its providers, also in the format that did not record it."""

from __future__ import annotations

import pytest

from builders.audit_cases import evidence
from vtax.audit import limits
from vtax.model.capabilities import UNKNOWN, Capabilities, NodeKind
from vtax.providers import provider_names
from vtax.providers.recorded import capabilities_of, started_emulation


def test_what_the_plan_records_counts() -> None:
    own = Capabilities(kind=NodeKind.VM, own_kernel=True)
    campaign = evidence(provider="cloud")
    plan = campaign.plan.model_copy(update={"capabilities": {"container": own}})
    assert capabilities_of(plan) == {"host": UNKNOWN, "container": own}  # nothing is guessed for what it lacks


def test_a_plan_of_format_1_has_those_of_the_built_in_providers() -> None:
    found = capabilities_of(evidence(provider="podman").plan)
    assert {name: one.kind for name, one in found.items()} == {"host": NodeKind.HOST, "container": NodeKind.CONTAINER}
    assert not found["host"].fresh_per_cell
    assert found["container"].fresh_per_cell
    known = [capabilities_of(evidence(provider=name).plan)["container"] for name in provider_names()]
    assert all(one.shares_machine is not one.away for one in known)


def test_of_any_other_provider_nothing_is_known() -> None:
    campaign = evidence({"container": {"cpus_allowed": "0-1", "cpus": 2}}, provider="cloud")
    assert campaign.capabilities("container") == campaign.capabilities("nothing") == UNKNOWN
    said = [item for item in limits.not_applied(campaign) if item.environment == "container"]
    assert [(one.id, one.unknown) for one in said] == [("C01", True)]
    assert "not recorded" in said[0].message


@pytest.mark.parametrize(
    ("line", "emulated"),
    [
        ("qemu-system-x86_64 -accel tcg,thread=multi", True),
        ("qemu-system-x86_64 -accel kvm", False),
        ("VBoxManage modifyvm one --vm-execution-engine interpreter", True),
        ("VBoxManage modifyvm one --vm-execution-engine native-api", False),
        ("docker create tcg interpreter", False),
    ],
)
def test_emulation_by_the_commands_of_a_cluster(line: str, emulated: bool) -> None:
    assert started_emulation([("true",), line.split()]) is emulated
