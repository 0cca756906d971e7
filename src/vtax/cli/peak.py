"""vtax peak: what the hardware could do at most."""

from __future__ import annotations

import re
from typing import Annotated

import typer

CLOCK = re.compile(r"^ *([0-9.]+) *(G|M)Hz *$", re.IGNORECASE)
RATE = re.compile(r"^ *([0-9.]+) *(G|M)T/s *$", re.IGNORECASE)


def peak(
    cores: Annotated[int | None, typer.Option(min=1, help="Cores that compute [all that may be used].")] = None,
    clock: Annotated[str | None, typer.Option(help='Their clock, as in "4.1 GHz" [base clock, from the CPU].')] = None,
    measure: Annotated[bool, typer.Option(help="Measure the clock with all of them busy, for a second.")] = False,
    flop_per_cycle: Annotated[
        int | None,
        typer.Option(min=1, help="Double-precision operations of a core a cycle [from its flags]."),
    ] = None,
    memory_rate: Annotated[
        str | None, typer.Option(help='Transfers of the memory, as in "3200 MT/s" [from the firmware].')
    ] = None,
    channels: Annotated[int | None, typer.Option(min=1, help="Memory channels in use [from the firmware].")] = None,
    json: Annotated[bool, typer.Option("--json", help="Print it as JSON.")] = False,
) -> None:
    """Theoretical peak of this machine, with everything that it rests on.

    What cannot be read and was not given is said, and is exit code 3.

    Example:  vtax peak --measure --memory-rate "3200 MT/s" --channels 2
    """
    from vtax.cli.console import print_json, say, warn
    from vtax.errors import EnvironmentMissing, UsageError
    from vtax.facts.clock import measured_clocks
    from vtax.facts.dmi import memory_devices, read_table
    from vtax.facts.host import host_facts
    from vtax.peak import Peak, cpu_peak, memory_peak
    from vtax.units import format_quantity

    facts = host_facts()
    told = None
    if clock and measure:
        raise UsageError("--clock and --measure at once", remedy="give one of them")
    if clock:
        told = (_quantity(CLOCK, clock, "--clock", "4.1 GHz"), "as told")
    elif measure:
        found = measured_clocks(facts["cpus_usable"])
        if not found:
            raise EnvironmentMissing("the clock cannot be measured on this processor", remedy="--clock GHz")
        told = (min(found.values()), "measured, the slowest CPU with all of them busy")
    rate = _quantity(RATE, memory_rate, "--memory-rate", "3200 MT/s") if memory_rate else None
    peaks: dict[str, Peak] = {}
    missing: list[EnvironmentMissing] = []
    try:
        peaks["compute"] = cpu_peak(facts, cores=cores, clock=told, flop_per_cycle=flop_per_cycle)
    except EnvironmentMissing as error:
        missing.append(error)
    try:
        peaks["memory"] = memory_peak(memory_devices(read_table()), rate=rate, channels=channels)
    except EnvironmentMissing as error:
        missing.append(error)
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


def _quantity(pattern: re.Pattern[str], text: str, option: str, example: str) -> float:
    from vtax.errors import UsageError

    match = pattern.match(text)
    try:
        value = float(match[1]) * {"g": 1e9, "m": 1e6}[match[2].lower()] if match else 0.0
    except ValueError:
        value = 0.0
    if value <= 0:
        raise UsageError(f'{option} "{text}" is not understood', remedy=f'write it as in "{example}"')
    return value
