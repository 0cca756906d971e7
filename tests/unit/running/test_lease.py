"""One campaign at a time on a machine: the owner is named, and loses the machine with its process."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import pytest

from vtax.errors import EnvironmentMissing
from vtax.running import lease


def test_the_second_one_is_told_who_is_first(tmp_path: Path) -> None:
    places = (tmp_path / "none", tmp_path)
    with ExitStack() as first, ExitStack() as second:
        lease.hold(first, "ann@here, /campaigns/x, process 1", 0.0, places)
        assert lease.owner(places) == "ann@here, /campaigns/x, process 1"
        with pytest.raises(EnvironmentMissing, match="used by another campaign: ann@here, /campaigns/x, process 1"):
            lease.hold(second, "bob@there", 0.0, places)
    assert lease.owner(places) == ""


def test_a_machine_that_is_free_again_can_be_held(tmp_path: Path) -> None:
    with ExitStack() as first:
        lease.hold(first, "a long name of an owner", 0.0, (tmp_path,))
    with ExitStack() as second:
        lease.hold(second, "bob", 0.0, (tmp_path,))
        assert lease.owner((tmp_path,)) == "bob"


def test_campaigns_that_are_started_here_share_the_machine_and_keep_others_out(tmp_path: Path) -> None:
    with ExitStack() as one, ExitStack() as two, ExitStack() as other:
        lease.share(one, (tmp_path,))
        lease.share(two, (tmp_path,))
        assert lease.owner((tmp_path,)) == "one that was started on the machine itself"
        with pytest.raises(EnvironmentMissing, match="by another campaign: one that was started on the machine itself"):
            lease.hold(other, "ann@there", 0.0, (tmp_path,))
        one.close()
        with pytest.raises(EnvironmentMissing, match="started on the machine itself"):
            lease.hold(other, "ann@there", 0.0, (tmp_path,))
    assert lease.owner((tmp_path,)) == ""


def test_a_campaign_that_is_started_here_is_told_whose_the_machine_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease, "GLANCE_S", 0.0)
    with ExitStack() as first, ExitStack() as here:
        lease.hold(first, "ann@there, /campaigns/x, process 1", 0.0, (tmp_path,))
        with pytest.raises(EnvironmentMissing, match="this machine is being used by another campaign: ann@there"):
            lease.share(here, (tmp_path,))


@pytest.mark.parametrize("kind", ["a pipe", "a link", "a directory"])
def test_what_is_no_file_is_not_waited_for(tmp_path: Path, kind: str) -> None:
    """Every user may write to the directory."""
    path = tmp_path / lease.NAME
    if kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a link":
        path.symlink_to("/dev/zero")
    else:
        path.mkdir()
    with pytest.raises(EnvironmentMissing, match="cannot be locked"):
        lease.owner((tmp_path,))
    with ExitStack() as stack, pytest.raises(EnvironmentMissing, match="cannot be locked"):
        lease.hold(stack, "ann", 0.0, (tmp_path,))
