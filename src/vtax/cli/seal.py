"""vtax seal: a campaign as one file for others, and checking such a file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from vtax.sealing.check import Checked
    from vtax.sealing.manifest import Manifest, RawOutput
    from vtax.sealing.redaction import Here

SHOWN = 20  # differences of each claim; --json has more


def seal(
    path: Annotated[
        Path,
        typer.Argument(metavar="CAMPAIGN", help="A campaign's directory; with --check, a file.", show_default=False),
    ],
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write [CAMPAIGN.vtax.zip, here].")
    ] = None,
    raw: Annotated[str, typer.Option(help="What programs printed: whole, or hashes alone.")] = "whole",
    sign: Annotated[
        Path | None, typer.Option(metavar="KEY", help="Sign with this SSH key (.pub: its private key is in an agent).")
    ] = None,
    redact: Annotated[
        bool, typer.Option("--redact", help="Replace names of hosts and users, addresses, serial numbers first.")
    ] = False,
    redact_word: Annotated[
        list[str] | None,
        typer.Option("--redact-word", metavar="WORD", help="Replace this word, too; implies --redact."),
    ] = None,
    check: Annotated[
        bool, typer.Option("--check", help="Check a sealed campaign instead. Runs nothing of it.")
    ] = False,
    signers: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --check: who may have signed (`man ssh-keygen`).")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print what was sealed or checked as JSON.")] = False,
) -> None:
    """Put a campaign into one file: plan, records, raw output, facts, analysis, versions. Or check such a file.

    The same campaign gives the same bytes. --check compares every hash, whether the plan was there before the runs,
    reads all numbers again from the raw output, and computes the verdicts again from the numbers. Exit code 1 when
    something is not what the file says. A signature proves who sealed a campaign, not when or how it ran.

    \b
    Example:  vtax seal campaigns/quick-20260101-120000 -o quick.vtax.zip --sign ~/.ssh/id_ed25519
    Example:  vtax seal campaigns/quick-20260101-120000 --raw hashes --redact
    Example:  vtax seal --check quick.vtax.zip --signers allowed_signers
    """
    from vtax.cli.console import paths, print_json, say, warn
    from vtax.sealing.seal import Wanted
    from vtax.sealing.seal import seal as make

    if check:
        _refuse(output=output, sign=sign, redact=redact or bool(redact_word))
        _check(path, signers, json=json)
        return
    if signers is not None:
        _refuse_lone_signers()
    file = output or Path(f"{path.resolve().name}.vtax.zip")
    here = _here(tuple(redact_word or ())) if redact or redact_word else None
    made = make(path, file, Wanted(_raw(raw), sign, here), paths().cache)
    if made.stayed:
        warn(f"note: not replaced, because vtax or the study uses the same word: {', '.join(made.stayed)}")
    if json:
        print_json({"file": str(file), "sha256": made.sha256, **made.manifest.model_dump(mode="json")})
    else:
        say(*_lines_of(made.manifest), f"seal {made.sha256}", f"sealed: {file}", f"next: vtax seal --check {file}")


def _raw(given: str) -> RawOutput:
    from vtax.errors import UsageError

    known: dict[str, RawOutput] = {"whole": "whole", "hashes": "hashes"}
    if given not in known:
        raise UsageError(f"--raw {given!r} is unknown", remedy="whole or hashes")
    return known[given]


def _refuse(**given: object) -> None:
    """Raise UsageError for options of sealing where a file is checked."""
    from vtax.errors import UsageError

    wrong = [f"--{name}" for name, value in given.items() if value]
    if wrong:
        raise UsageError(f"--check writes nothing, so {wrong[0]} has no meaning", remedy="leave one of them out")


def _refuse_lone_signers() -> None:
    from vtax.errors import UsageError

    raise UsageError("--signers is about checking a file", remedy="add --check, or sign with --sign KEY")


def _here(words: tuple[str, ...]) -> Here:
    """The machine and the user that seal."""
    import contextlib
    import getpass
    import platform

    from vtax.sealing.redaction import Here

    user = ""
    with contextlib.suppress(KeyError, OSError):  # a user without a name
        user = getpass.getuser()
    return Here(platform.node(), user, str(Path.home()), words)


def _lines_of(sealed: Manifest) -> Iterator[str]:
    from vtax.units import format_bytes

    total = sum(one.size_bytes for one in sealed.files.values())
    by_hash = f", {sealed.by_hash} of them by hash alone" if sealed.by_hash else ""
    yield f"{sealed.campaign} ({sealed.id}): {len(sealed.files)} files, {format_bytes(total)}{by_hash}"
    if sealed.redacted is not None:
        yield f"redacted: {_counts(sealed.redacted)}; look through it before you publish it"


def _counts(redacted: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in redacted.items()) or "nothing was found"


def _check(path: Path, signers: Path | None, *, json: bool) -> None:
    from vtax.cli.console import paths, print_json, say
    from vtax.errors import SealFailed, UsageError
    from vtax.sealing.check import check as check_seal

    if not path.is_file():
        raise UsageError(f"{path} is not a file of `vtax seal`", remedy="give the file that was made with --output")
    made = check_seal(path, signers, paths().cache)
    if json:
        print_json({**made.model_dump(mode="json"), "holds": made.holds})
    else:
        say(*_lines_of_check(made))
    if not made.holds:
        failed = [claim.what for claim in made.claims if claim.state == "fails"]
        raise SealFailed(f"{path} is not what it claims: {', '.join(failed)}", remedy="ask whoever made it")


def _lines_of_check(made: Checked) -> Iterator[str]:
    if made.sha256:
        yield f"{made.campaign}, sealed by vtax {made.sealed_by}: seal {made.sha256}"
    if made.redacted is not None:
        yield f"redacted before it was sealed: {_counts(made.redacted)}"
    width = max(len(claim.what) for claim in made.claims)
    for claim in made.claims:
        yield f"{claim.what.ljust(width)}  {claim.state.ljust(11)}  {claim.said}"
        yield from (f"    {one}" for one in claim.differences[:SHOWN])
        if claim.count > SHOWN:
            yield f"    and {claim.count - SHOWN} more"
