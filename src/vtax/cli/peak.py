"""vtax peak: what the hardware could do at most."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from vtax.errors import EnvironmentMissing
    from vtax.reference.peak import Peak

CLOCK = re.compile(r"^ *([0-9.]+) *(G|M)Hz *$", re.IGNORECASE)
RATE = re.compile(r"^ *([0-9.]+) *(G|M)T/s *$", re.IGNORECASE)

Cores = Annotated[int | None, typer.Option(min=1, help="Cores in use [all that may be used].")]
Clock = Annotated[str | None, typer.Option(help='Their clock, as in "4.1 GHz" [base clock, from the CPU].')]
Measure = Annotated[bool, typer.Option(help="Measure the clock for one second with all cores busy.")]
FlopPerCycle = Annotated[
    int | None, typer.Option(min=1, help="Double-precision operations per core and cycle [from its flags].")
]
MemoryRate = Annotated[str | None, typer.Option(help='Transfers of the memory, as in "3200 MT/s" [from the firmware].')]
Channels = Annotated[int | None, typer.Option(min=1, help="Memory channels in use [from the firmware].")]
Json = Annotated[bool, typer.Option("--json", help="Print this as JSON.")]


def peak(
    cores: Cores = None,
    clock: Clock = None,
    measure: Measure = False,
    flop_per_cycle: FlopPerCycle = None,
    memory_rate: MemoryRate = None,
    channels: Channels = None,
    json: Json = False,
) -> None:
    """Print the theoretical peak of this machine and the assumptions behind it.

    Exit code 3 when a value is missing: it could not be read and was not given.

    \b
    Example:  vtax peak --measure --memory-rate "3200 MT/s" --channels 2
    """
    from vtax.cli.console import print_json, say, warn
    from vtax.facts.dmi import memory_devices, read_table
    from vtax.facts.host import host_facts
    from vtax.reference.peak import cpu_peak, memory_peak
    from vtax.units import format_quantity

    facts = host_facts()
    given = _clock(clock, measure, facts)
    rate = _quantity(RATE, memory_rate, "--memory-rate", "3200 MT/s") if memory_rate else None
    peaks, missing = _known(
        {
            "compute": lambda: cpu_peak(facts, cores=cores, clock=given, flop_per_cycle=flop_per_cycle),
            "memory": lambda: memory_peak(memory_devices(read_table()), rate=rate, channels=channels),
        }
    )
    if json:
        print_json({name: found.model_dump(mode="json") for name, found in peaks.items()})
    else:
        for name, known in peaks.items():
            say(f"{name}  {format_quantity(known.value, known.unit)}  = {known.formula}")
            say(*(f"  {text}" for text in known.assumptions))
    if not peaks:
        raise missing[0]
    for one in missing:
        warn(str(one))
    if missing:
        raise typer.Exit(3)


def _clock(clock: str | None, measure: bool, facts: dict[str, Any]) -> tuple[float, str] | None:
    """The clock in Hz and where it is from, as given or measured; None leaves it to what the CPU reports."""
    from vtax.errors import EnvironmentMissing, UsageError
    from vtax.facts.clock import measured_clocks

    if clock and measure:
        raise UsageError("--clock and --measure exclude each other", remedy="give one of them")
    if clock:
        return _quantity(CLOCK, clock, "--clock", "4.1 GHz"), "as given"
    if not measure:
        return None
    found = measured_clocks(facts["cpus_usable"])
    if not found:
        raise EnvironmentMissing("the clock cannot be measured on this processor", remedy="--clock GHz")
    return min(found.values()), "measured, the slowest CPU with all of them busy"


def _known(peaks: dict[str, Callable[[], Peak]]) -> tuple[dict[str, Peak], list[EnvironmentMissing]]:
    """The peaks that can be worked out here, and why the others cannot."""
    from vtax.errors import EnvironmentMissing

    found: dict[str, Peak] = {}
    missing: list[EnvironmentMissing] = []
    for name, work_out in peaks.items():
        try:
            found[name] = work_out()
        except EnvironmentMissing as error:
            missing.append(error)
    return found, missing


def _quantity(pattern: re.Pattern[str], text: str, option: str, example: str) -> float:
    from vtax.errors import UsageError

    match = pattern.match(text)
    try:
        value = float(match[1]) * {"g": 1e9, "m": 1e6}[match[2].lower()] if match else 0.0
    except ValueError:
        value = 0.0
    if value <= 0:
        raise UsageError(f'{option} "{text}" is not a valid value', remedy=f'write it as in "{example}"')
    return value
