"""vtax doctor: what works here, what does not, and how to fix it; and how quiet this machine is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from vtax.analysis.noise import Resolution
    from vtax.model.noise import NoiseReading
    from vtax.model.study import Study
    from vtax.running.machine_states import MachineState

BUSY_FROM = 0.1  # share of all CPU time
BUSY = "other programs use {share} of the CPUs: stop them, and measure again"
SHOWN = ("os", "kernel", "cpu_model", "cgroup_version", "governor", "clock_source", "smt", "load1")


def doctor(
    json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False,
    noise: Annotated[
        bool, typer.Option("--noise", help="Measure for 15 s how quiet this machine is, and what it can resolve.")
    ] = False,
    machines: Annotated[
        Path | None, typer.Option(help="Look at the machines of this study instead: a line for each.")
    ] = None,
) -> None:
    """Show which providers work here, why others do not and how to fix that; describe the machine.

    Exit code 3 when no comparison is possible. With --noise, instead, measure how even the machine's CPU, memory and
    disk are, and how small a difference the quick study can tell from that noise. With --machines, log in to each
    machine of a study and do the same there; exit code 3 when one of them cannot be used.

    \b
    Example:  vtax doctor
    Example:  vtax doctor --noise
    Example:  vtax doctor --machines study.toml
    """
    if machines is not None:
        _machines(machines, json)
        return
    if noise:
        _noise(json)
        return
    _here(json)


def _here(json: bool) -> None:
    """Say what works on this machine."""
    from vtax.cli.console import paths, print_json, say
    from vtax.running.doctor import diagnose
    from vtax.units import format_bytes

    found = diagnose(paths())
    if json:
        print_json({**found.model_dump(mode="json"), "works": found.works})
        raise typer.Exit(0 if found.works else 3)
    facts = found.host
    say("this machine")
    for key in SHOWN:
        if key in facts:
            say(f"  {key.replace('_', ' ')}: {facts[key]}")
    say(f"  CPUs: {len(facts.get('cpus', ()))}, memory: {format_bytes(int(facts['memory_total_bytes']))}")
    layers = " in ".join(reversed(facts.get("virtualization", ())))
    say(f"  this host is itself inside: {layers or 'nothing visible: bare metal, as far as can be seen'}")
    say("", "providers")
    for one in found.providers:
        how = f" ({one.note})" if one.note else ""
        say(f"  {one.name}: " + (f"works{how}" if one.works else f"does not work: {one.reason}"))
        if one.remedy:
            say(f"    next: {one.remedy}")
    say("", "root file system")
    if found.image_reason:
        say(f"  cannot be built: {found.image_reason}", "    next: as root: apt-get install mmdebstrap uidmap")
    else:
        say(f"  in the cache: {found.image_cached}" if found.image_cached else "  not built yet: `vtax image build`")
    if found.blas_core:
        say(f"  OpenBLAS kernel on this CPU: {found.blas_core}")
    for program, command in found.programs.items():
        say("", f"missing: {program}", f"  next: as root: {command}")
    if found.left_behind:
        items = "leftover" if found.left_behind == 1 else "leftovers"
        say("", f"{found.left_behind} {items} from earlier runs", "  next: vtax clean")
    for note in found.notes:
        say("", f"note: {note}")
    say("", "rights: planning, analysis and reports need none; the image build and the host environment need root or a")
    say(
        "user namespace with subordinate ids; limiting the host's memory needs root; providers may need more, see above"
    )
    raise typer.Exit(0 if found.works else 3)


def _machines(study: Path, json: bool) -> None:
    """Say of each machine of a study what works there."""
    from vtax.cli.console import paths, print_json, say, warn
    from vtax.planning.study import load, with_machines
    from vtax.running.machine_states import diagnose_machines

    states = diagnose_machines(with_machines(load(study)), paths(), warn)
    if json:
        print_json([one.model_dump(mode="json") for one in states])
    else:
        for one in states:
            say(*machine_lines(one))
    raise typer.Exit(0 if all(one.works for one in states) else 3)


def machine_lines(state: MachineState) -> list[str]:
    """One machine: a line of what it is, and the next step where there is one."""
    from vtax.units import format_bytes

    where = f"{state.name} ({state.ssh})"
    if state.found is None:
        lines = state.reason.splitlines()
        return [f"{where}: {lines[0]}", *(f"    {line}" for line in lines[1:]), f"  next: {state.remedy}"]
    facts = state.found.host
    works = [one.name for one in state.found.providers if one.works]
    what = (
        f"{facts.get('os', 'Linux')}, kernel {facts.get('kernel')}, {facts.get('cpu_model', 'CPU unknown')}, "
        f"{len(facts['cpus_usable'])} CPUs, {format_bytes(int(facts['memory_total_bytes']))}"
    )
    lines = [f"{where}: {', '.join(works) or 'nothing'} works; {what}; clock {state.clock_offset_s:+.3f} s"]
    lines += [f"  {one.name}: {one.reason}" for one in state.found.providers if not one.works]
    if state.nfs is not None:
        nfs = [f"cannot {what}: {why}" for what, why in state.nfs.items()] or ["can serve and mount"]
        lines += [f"  /shared by NFS: {one}" for one in nfs]
    if state.owner:
        lines.append(f"  in use by {state.owner}")
    if state.found.left_behind:
        lines += [f"  {state.found.left_behind} left behind by earlier runs", "  next: vtax clean --machines STUDY"]
    return lines


def _noise(json: bool) -> None:
    """Measure the noise of this machine, and say what the quick study resolves here."""
    from vtax.analysis.noise import resolutions
    from vtax.cli.console import paths, print_json, say
    from vtax.cli.progress import progress
    from vtax.planning.presets import preset
    from vtax.planning.study import parse
    from vtax.running.noise import measure

    study = parse(preset("quick"), "quick")
    with progress() as listener:
        reading = measure(paths().state, listener)
    found = resolutions(reading, _iterations(study), study.rounds, study.margin)
    if json:
        shape = {"iterations": _iterations(study), "rounds": study.rounds, "margin": study.margin}
        made = {"shape": shape, "resolutions": [one.model_dump(mode="json") for one in found]}
        print_json({**reading.model_dump(mode="json"), **made})
    else:
        say(*noise_lines(reading, found, study))


def _iterations(study: Study) -> int:
    """The fewest of its deciding entries, which alternate: the least that it can tell."""
    return min(entry.iterations for entry in study.benchmarks if entry.iterations > 1)


def noise_lines(reading: NoiseReading, found: Sequence[Resolution], study: Study) -> list[str]:
    """What was measured and what it means, as text."""
    from vtax.cli.console import table

    def percent(share: float | None) -> str:
        return "not counted here" if share is None else f"{100 * share:.1f} %"

    margin = f"{100 * study.margin:g} %"
    rows = [
        (
            one.name,
            f"{100 * one.adjacent:.1f} %",
            f"{100 * one.apart:.1f} %",
            f"±{100 * one.half_width:.1f} %",
            "out of reach" if one.rounds is None else str(one.rounds),
        )
        for one in found
    ]
    header = (
        "",
        "adjacent slots",
        f"{reading.apart_s:.1f} s apart",
        f"in {study.rounds} rounds",
        f"rounds for {margin}",
    )
    unknown = [probe.name for probe in reading.probes if probe.name not in {one.name for one in found}]
    return [
        f"stolen CPU time {percent(reading.stolen)}, used by other programs {percent(reading.others)}",
        *([table(rows, header)] if rows else []),
        *(f"{name}: too slow here to be measured in {reading.elapsed_s:.0f} s" for name in unknown),
        "",
        *([BUSY.format(share=percent(reading.others))] if (reading.others or 0.0) > BUSY_FROM else []),
        *_meaning(found, study, reading.slot_s),
    ]


def _meaning(found: Sequence[Resolution], study: Study, slot_s: float) -> list[str]:
    """What the quick study can tell here, in sentences."""
    from vtax.wording import listed

    margin, shape = f"{100 * study.margin:g} %", f"{study.rounds} rounds of {_iterations(study)} interleaved iterations"
    fine = [one.name for one in found if one.half_width <= study.margin]
    more = [f"{one.name} (in {one.rounds})" for one in found if one.half_width > study.margin and one.rounds]
    never = [one.name for one in found if one.rounds is None]
    return [
        *([f"quick, {shape}, can tell a difference of {margin} here: {listed(fine)}"] if fine else []),
        *([f"more rounds are needed for that: {listed(more)}; vtax run quick --rounds N"] if more else []),
        *([f"too noisy for that now: {listed(never)}; measure again later"] if never else []),
        f"This is the noise of plain loops in slots of {slot_s:g} s. Runs of a second average some of it out, so that "
        "they may need fewer rounds; tools may be noisier, and clusters differ a little too.",
    ]
