"""What run, analyse and compare share: gates on the command line, their results, JUnit XML."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from vtax.analysis.gates import GateResult, Subject
    from vtax.model.finding import Finding
    from vtax.model.study import Study

FailOn = Annotated[
    list[str] | None,
    typer.Option(
        "--fail-on",
        metavar="GATE",
        help='Exit with 5 when this is confirmed, such as "hpcc.HPL slower than 5%", "any primary slower than 5%", '
        '"blocker", "inconclusive"; may be repeated.',
    ),
]
Junit = Annotated[Path | None, typer.Option("--junit", metavar="FILE", help="Write gates and verdicts as JUnit XML.")]


def check_gates(texts: Sequence[str], junit: Path | None, *studies: Study | None, baseline: bool = False) -> None:
    """Raise UsageError now for wrong gates and an unwritable file, instead of after hours."""
    from vtax.analysis import gates as rules
    from vtax.errors import UsageError
    from vtax.tools import declared_metrics

    gates = rules.parse_gates(texts)
    for study in studies:
        if study is not None:
            rules.check_gates(gates, study, declared_metrics(study.benchmarks), baseline=baseline)
    if junit is not None and (junit.is_dir() or not junit.absolute().parent.is_dir()):
        raise UsageError(f"--junit {junit}: this file cannot be written", remedy="give a file in an existing directory")


def report_gates(
    title: str,
    texts: Sequence[str],
    subjects: Sequence[Subject],
    findings: Sequence[Finding],
    junit: Path | None,
) -> None:
    """Judge the gates, write the JUnit file, report each result. Raises GateFailed when one failed."""
    from vtax.analysis.gates import Result, judge, parse_gates
    from vtax.cli.console import warn
    from vtax.errors import GateFailed
    from vtax.export.junit import junit as document
    from vtax.store import write_atomic

    judged = judge(parse_gates(texts), subjects, findings)
    if junit is not None:
        write_atomic(junit, document(title, judged, subjects))
    for one in judged:
        warn(*_lines(one))
    failed = [one for one in judged if one.result is Result.FAILED]
    if failed:
        raise GateFailed(
            f"{len(failed)} of {len(judged)} gates failed",
            detail="\n".join(one.gate.text for one in failed),
            remedy="the reasons are listed above and in the report",
        )


def _lines(one: GateResult) -> list[str]:
    from vtax.analysis.gates import Result

    if one.result is Result.HOLDS:
        return [f'gate "{one.gate.text}": holds']
    word = "warning: " if one.result is Result.NOT_RESOLVED else ""
    advice = "; --fail-on inconclusive makes that a failure" if word else ""
    shown = [case for case in one.cases if case.result is not Result.HOLDS]
    return [
        f'{word}gate "{one.gate.text}": {one.result}{advice}',
        *(f"  {case.result}: {case.name}: {case.message}" for case in shown),
    ]
