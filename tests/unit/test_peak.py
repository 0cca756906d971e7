"""Theoretical peaks: from CPU facts, the firmware's memory table, a measured clock; and the sizes of HPL."""

from __future__ import annotations

import json
import os
import platform
import struct
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from vtax.cli.app import app
from vtax.errors import EnvironmentMissing, UsageError
from vtax.facts.clock import measured_clocks
from vtax.facts.dmi import memory_devices
from vtax.reference.peak import channel_count, cpu_peak, memory_peak, operations_per_cycle
from vtax.tools.hpcc.linpack import file_for

INTEL, AMD = "GenuineIntel", "AuthenticAMD"


def cpu(flags: str, vendor: str = INTEL, model: str = "", family: int | None = None, **more: Any) -> dict[str, Any]:
    return {"cpu_flags": flags.split(), "cpu_vendor": vendor, "cpu_model": model, "cpu_family": family, **more}


@pytest.mark.parametrize(
    ("facts", "operations"),
    [
        (cpu("sse2 avx avx2 fma", model="Intel(R) Core(TM) i5-10600K CPU @ 4.10GHz"), 16),
        (cpu("sse2 avx avx2 fma avx512f", model="Intel(R) Xeon(R) Platinum 8480+"), 32),
        (cpu("sse2 avx avx2 fma avx512f", model="11th Gen Intel(R) Core(TM) i7-1165G7 @ 2.80GHz"), 16),
        (cpu("sse2 avx avx2 fma avx512f", AMD, family=25), 16),
        (cpu("sse2 avx avx2 fma avx512f", AMD, family=26), 32),
        (cpu("sse2 avx"), 8),
        (cpu("sse2"), 4),
        (cpu("fp asimd", "0x41"), 8),
        (cpu("fp asimd", "0x61"), 16),
    ],
)
def test_operations_a_cycle_follow_from_the_instructions(facts: dict[str, Any], operations: int) -> None:
    found, why = operations_per_cycle(facts)
    assert found == operations
    assert why


def test_the_published_peak_of_a_desktop() -> None:
    """4 cores x 4.10 GHz x 16 = 262.4 Gflop/s, as its report works it out by hand."""
    facts = cpu(
        "sse2 avx avx2 fma",
        model="Intel(R) Core(TM) i5-10600K CPU @ 4.10GHz",
        cpus_usable=list(range(8)),
        cpus=[{"id": i, "core": i // 2, "socket": 0} for i in range(8)],
    )
    peak = cpu_peak(facts)
    assert peak.value == pytest.approx(262.4e9)
    assert peak.cores == 4  # under eight hardware threads
    assert peak.formula == "4 cores x 4.10 GHz x 16 flop per cycle"
    assert any("base clock" in text for text in peak.assumptions)
    assert cpu_peak(facts, cores=2, clock=(4.8e9, "as given"), flop_per_cycle=8).value == pytest.approx(76.8e9)


def test_cores_that_are_not_known_are_said_to_be_guessed() -> None:
    facts = cpu("sse2", model="x @ 1.00GHz", cpus_usable=[0, 1], cpus=[{"id": 0}, {"id": 1}])
    peak = cpu_peak(facts)
    assert peak.value == pytest.approx(8e9)
    assert any("each counted as a core" in text for text in peak.assumptions)


@pytest.mark.parametrize(
    ("facts", "remedy"),
    [
        (cpu("sse2", cpus_usable=[0]), "--clock"),
        (cpu("", model="x @ 1GHz", cpus_usable=[0]), "--flop-per-cycle"),
        (cpu("sse2", model="x @ 1GHz"), "--cores"),
    ],
)
def test_what_nobody_knows_is_not_guessed(facts: dict[str, Any], remedy: str) -> None:
    with pytest.raises(EnvironmentMissing) as caught:
        cpu_peak(facts)
    assert remedy in str(caught.value)


# --- memory --------------------------------------------------------------------------------------------------------


def module(locator: str, bank: str, mib: int = 4096, rate: int = 2400, configured: int = 1867) -> bytes:
    """A memory device as SMBIOS 2.8 writes it: 40 bytes and up to two strings."""
    body = bytearray(40)
    struct.pack_into("<BBH", body, 0, 17, 40, 0x40)
    struct.pack_into("<HHH", body, 0x08, 72, 64, mib)
    body[0x10], body[0x11] = 1, 2 if bank else 0
    struct.pack_into("<H", body, 0x15, rate)
    struct.pack_into("<H", body, 0x20, configured)
    return bytes(body) + b"\0".join(name.encode() for name in (locator, bank) if name) + b"\0\0"


OTHER = struct.pack("<BBH", 0, 8, 0) + b"\1\0\0\0" + b"BIOS\0\0"
END = struct.pack("<BBH", 127, 4, 0x7F) + b"\0\0"
TWO = OTHER + module("ChannelA-DIMM0", "BANK 0") + module("ChannelB-DIMM0", "BANK 2") + END


def test_modules_are_read_from_the_firmwares_table() -> None:
    first, second = memory_devices(TWO)
    assert (first.locator, first.bank, first.size_bytes) == ("ChannelA-DIMM0", "BANK 0", 4 * 2**30)
    assert (second.rate, second.width_bits) == (1867e6, 64)  # what is configured, not what the module could do
    assert memory_devices(OTHER + module("A", "", mib=0) + END) == ()  # an empty slot
    assert memory_devices(OTHER + module("A", "", rate=0, configured=0) + END) == ()  # a virtual machine's


def test_every_prefix_of_the_table_is_read_or_refused_without_a_fault() -> None:
    for length in range(len(TWO)):
        assert len(memory_devices(TWO[:length])) <= 2


def test_the_published_bandwidth_of_a_laptop() -> None:
    """1.867 GT/s x 8 B x 2 = 29.872 GB/s, as its report works it out by hand."""
    peak = memory_peak(memory_devices(TWO))
    assert peak.value == pytest.approx(29.872e9)
    assert peak.formula == "2 channels x 1,867 MT/s x 8 B"


@pytest.mark.parametrize(
    ("slots", "channels"),
    [
        ([("DIMM_A1", ""), ("DIMM_A2", ""), ("DIMM_B1", ""), ("DIMM_B2", "")], 2),
        ([("DIMM 0", "P0 CHANNEL A"), ("DIMM 0", "P0 CHANNEL B")], 2),
        ([("CPU0_DIMM_A1", ""), ("CPU1_DIMM_A1", "")], 2),
        ([("slot 1", ""), ("slot 2", ""), ("slot 3", "")], 3),
    ],
)
def test_channels_are_counted_by_the_names_of_the_slots(slots: list[tuple[str, str]], channels: int) -> None:
    table = b"".join(module(*slot) for slot in slots) + END
    assert channel_count(memory_devices(table))[0] == channels


def test_without_a_table_the_bandwidth_is_not_guessed() -> None:
    with pytest.raises(EnvironmentMissing, match="missing or not readable"):
        memory_peak(())
    with pytest.raises(EnvironmentMissing, match="channels is not known"):
        memory_peak((), rate=3.2e9)
    assert memory_peak((), rate=3.2e9, channels=2).value == pytest.approx(51.2e9)


# --- the clock -----------------------------------------------------------------------------------------------------


@pytest.mark.skipif(platform.machine() != "x86_64", reason="only x86-64 has a known number of cycles")
def test_the_clock_is_measured_with_all_cpus_busy() -> None:
    cpus = sorted(os.sched_getaffinity(0))[:2]
    found = measured_clocks(cpus)
    assert sorted(found) == cpus
    assert all(5e8 < clock < 8e9 for clock in found.values())
    assert measured_clocks(()) == {}


# --- the commands --------------------------------------------------------------------------------------------------


def test_peak_says_what_it_rests_on() -> None:
    words = ["peak", "--cores", "4", "--clock", "4.1 GHz", "--flop-per-cycle", "16"]
    words += ["--memory-rate", "1867 MT/s", "--channels", "2"]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[0] == "compute  262.4 Gflop/s  = 4 cores x 4.10 GHz x 16 flop per cycle"
    assert "memory  29.87 GB/s  = 2 channels x 1,867 MT/s x 8 B" in result.stdout
    assert json.loads(CliRunner().invoke(app, [*words, "--json"]).stdout)["compute"]["value"] == pytest.approx(262.4e9)


@pytest.mark.parametrize("words", [["--clock", "fast"], ["--clock", "0 GHz"], ["--clock", "1 GHz", "--measure"]])
def test_peak_refuses_what_it_does_not_understand(words: list[str]) -> None:
    result = CliRunner().invoke(app, ["peak", *words])
    assert isinstance(result.exception, UsageError)


def test_tune_fills_the_memory_with_whole_blocks(tmp_path: Path) -> None:
    """2 nodes of 2 GiB with 2 ranks: (2 GiB - 96 MiB)/2 - 64 MiB = 912 MiB a rank, four ranks, 80 % of it."""
    place = tmp_path / "hpccinf.txt"
    words = ["tune", "hpl", "--nodes", "2", "--memory", "2 GiB", "--ranks", "2"]
    result = CliRunner().invoke(app, [*words, "--output", str(place), "--json"])
    found = json.loads(result.stdout)
    room = 0.8 * 4 * 912 * 2**20
    assert (found["p"], found["q"], found["ranks"]) == (2, 2, 4)
    assert found["n"] % 192 == 0
    assert found["n"] ** 2 * 8 <= room < (found["n"] + 192) ** 2 * 8
    assert f"\n{found['n']}         Ns\n" in place.read_text()
    again = CliRunner().invoke(app, [*words, "--output", str(place)])
    assert isinstance(again.exception, UsageError)  # nothing is overwritten


def test_the_file_of_hpl_itself_has_31_lines_and_prints() -> None:
    text = file_for("HPL.dat", 1000, 100, 1, 2)
    assert len(text.splitlines()) == 31
    assert "6            device out" in text
    assert len(file_for("hpccinf.txt", 1000, 100, 1, 2).splitlines()) == 36


@pytest.mark.parametrize(
    "words", [["--memory", "big"], ["--fraction", "2"], ["--output", "x.dat"], ["--memory", "1 MB"]]
)
def test_tune_refuses_what_cannot_be(words: list[str]) -> None:
    result = CliRunner().invoke(app, ["tune", "hpl", *words])
    assert isinstance(result.exception, UsageError)
