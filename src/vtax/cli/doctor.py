"""vtax doctor: what works here, what does not, and how to fix it."""

from __future__ import annotations

from typing import Annotated

import typer

SHOWN = ("os", "kernel", "cpu_model", "cgroup_version", "governor", "clock_source", "smt", "load1")


def doctor(json: Annotated[bool, typer.Option("--json", help="Print everything as JSON.")] = False) -> None:
    """Show which providers work here, why others do not and how to fix that; describe the machine.

    Exit code 3 when no comparison is possible.

    \b
    Example:  vtax doctor
    """
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
