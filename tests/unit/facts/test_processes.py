"""Processes below /proc: the tree of one, and the memory of all of them."""

from __future__ import annotations

from pathlib import Path

from vtax.facts.processes import parent_of, program_of, pss_bytes, tree


def add(proc: Path, pid: int, parent: int, command: bytes = b"", pss_kib: int | None = None) -> None:
    place = proc / str(pid)
    place.mkdir()
    (place / "stat").write_text(f"{pid} (a ) b) S {parent} 1 1 0 -1")
    (place / "cmdline").write_bytes(command)
    if pss_kib is not None:
        (place / "smaps_rollup").write_text(
            f"55d4-7fff ---p 0 00:00 0 [rollup]\nRss: 99 kB\nPss: {pss_kib} kB\nPss_Dirty: 1 kB\n"
        )


def test_a_process_and_all_below_it(tmp_path: Path) -> None:
    for pid, parent in ((1, 0), (10, 1), (11, 10), (12, 11), (13, 1)):
        add(tmp_path, pid, parent)
    assert sorted(tree(10, tmp_path)) == [10, 11, 12]
    assert parent_of(12, tmp_path) == 11
    assert parent_of(99, tmp_path) == 0


def test_the_program_is_the_first_word_of_the_command(tmp_path: Path) -> None:
    add(tmp_path, 5, 1, b"/usr/bin/conmon\0--api\0")
    assert program_of(5, tmp_path) == "conmon"
    assert program_of(6, tmp_path) == ""


def test_memory_is_the_sum_of_what_can_be_read(tmp_path: Path) -> None:
    add(tmp_path, 5, 1, pss_kib=100)
    add(tmp_path, 6, 5, pss_kib=20)
    assert pss_bytes((5, 6), tmp_path) == 120 * 1024
    assert pss_bytes((5, 6, 7), tmp_path) == 120 * 1024  # 7 has ended
    assert pss_bytes((7,), tmp_path) is None


def test_memory_that_may_not_be_looked_at_is_unknown(tmp_path: Path) -> None:
    add(tmp_path, 5, 1, pss_kib=100)
    add(tmp_path, 6, 5)
    (tmp_path / "6" / "smaps_rollup").mkdir()  # reading it fails, as without permission
    assert pss_bytes((5, 6), tmp_path) is None
