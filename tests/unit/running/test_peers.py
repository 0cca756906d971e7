"""Between which nodes SSH is checked when a cluster is verified, and what is made of the answers."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from vtax.running import peers

NAMES = ["master", *(f"worker{number}" for number in range(1, 64))]


def test_every_pair_of_eight_nodes() -> None:
    checked = peers.logins(NAMES[:8], seed=1)
    assert all(set(servers) == set(NAMES[:8]) - {client} for client, servers in checked.items())
    assert peers.sentence(checked, 1) == "names and SSH between all 56 pairs of nodes"


def test_of_more_nodes_a_number_that_grows_as_they_do() -> None:
    """From the master 63; a ring of 64, of which one is from the master; 64 random chords, some of which are known."""
    checked = peers.logins(NAMES, seed=1)
    assert set(checked["master"]) == set(NAMES[1:])
    ring = {*zip(NAMES, (*NAMES[1:], NAMES[0]), strict=True)}
    pairs = {(client, server) for client, servers in checked.items() for server in servers}
    assert ring <= pairs
    assert 63 + 63 < len(pairs) <= 63 + 63 + 63
    assert all(client != server for client, server in pairs)
    assert all(len(checked[name]) <= 2 for name in NAMES[1:])
    assert all(1 <= sum(server == name for _, server in pairs) <= 3 for name in NAMES)


def test_the_chords_depend_on_the_seed_alone() -> None:
    assert peers.logins(NAMES, seed=1) == peers.logins(NAMES, seed=1)
    assert peers.logins(NAMES, seed=1) != peers.logins(NAMES, seed=2)


def test_what_was_checked_is_stated() -> None:
    checked = {"a": ("b",), **dict.fromkeys("bcdefghi", ("a",))}
    assert peers.sentence(checked, 5) == (
        "names of all 9 nodes on each, and SSH between 9 of 72 pairs: from a to all, along a ring, and along random "
        "chords (seed 5)"
    )


def test_one_process_finds_all_names() -> None:
    script = peers.script(["worker1", "worker2"], ["worker2"], wait_s=12)
    assert script.count("getent") == 1
    assert "getent hosts worker1 worker2 |" in script
    assert script.count("ssh ") == 1
    assert "-o ConnectTimeout=12 root@worker2 echo vtax-login worker2 " in script
    assert peers.script([], [], wait_s=12) == ""


def test_a_node_logs_in_to_few_at_a_time(tmp_path: Path) -> None:
    """63 SSH clients would not fit into the memory of a small node."""
    ssh = tmp_path / "ssh"
    ssh.write_text(
        f"#!/bin/sh\ntouch {tmp_path}/on.$$\nls {tmp_path} | grep -c on >>{tmp_path}/most\nsleep 0.1\n"
        f'rm {tmp_path}/on.$$\nshift 4\nshift\necho "$2 $3"\n'
    )
    ssh.chmod(0o755)
    script = peers.script(NAMES[1:], NAMES[1:], wait_s=12) + "\nwait\n"
    made = subprocess.run(
        ("sh", "-s"), input=script, capture_output=True, text=True, env={"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    )
    said = re.findall(r"^vtax-login (\S+)$", made.stdout, re.MULTILINE)
    assert sorted(said) == sorted(NAMES[1:])
    assert max(map(int, (tmp_path / "most").read_text().split())) <= peers.AT_ONCE


def test_a_name_is_checked_also_where_nobody_logs_in() -> None:
    text = "vtax-name a 10.0.0.2\nvtax-name b 10.0.0.9\nvtax-login a\n"
    addresses = {"a": "10.0.0.2", "b": "10.0.0.3", "c": "10.0.0.4"}
    assert peers.wrong("d", addresses, ["a", "c"], text) == [
        "d finds b at 10.0.0.9",
        "d cannot log in to c: no answer",
        "d finds c at no address",
    ]
