"""vtax reference: published results about virtual machines and containers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from vtax.reference import Figure, Report

app = typer.Typer(
    help="Published results to compare with.\n\n\b\nExample:  vtax reference show i7-8550u",
    no_args_is_help=True,
    rich_markup_mode=None,
)
Json = Annotated[bool, typer.Option("--json", help="Print this as JSON.")]


@app.command("list")
def list_(json: Json = False) -> None:
    """List the reports whose results are included.

    \b
    Example:  vtax reference list
    """
    from vtax.cli.console import print_json, say, table
    from vtax.reference import reports

    if json:
        print_json([report.model_dump(mode="json", exclude={"figures"}) for report in reports()])
        return
    rows = [
        (report.key, report.published, report.author, str(len(report.figures)), report.machine) for report in reports()
    ]
    say(table(rows, ("report", "published", "author", "figures", "machine")))


@app.command()
def show(
    report: Annotated[str, typer.Argument(help="A report, as in `vtax reference list`.", show_default=False)],
    benchmark: Annotated[str | None, typer.Option(help="Only the results of this benchmark.")] = None,
    metric: Annotated[str | None, typer.Option(help="Only the results of this metric.")] = None,
    json: Json = False,
) -> None:
    """Show a report's results: with scaled units, as printed, and with remarks where they are wrong.

    \b
    Example:  vtax reference show i7-8550u --benchmark iperf3
    """
    from vtax.cli.console import print_json, say, table
    from vtax.errors import UsageError
    from vtax.reference import report as read

    found = read(report)
    figures = [one for one in found.figures if benchmark in (None, one.benchmark) and metric in (None, one.metric)]
    if not figures:
        names = sorted({f"{one.benchmark} {one.metric}" for one in found.figures})
        raise UsageError(f"the report {report} has no such result", remedy=f"it has {', '.join(names)}")
    if json:
        print_json({**found.model_dump(mode="json"), "figures": [one.model_dump(mode="json") for one in figures]})
        return
    say(f"{found.title}, {found.author}, {found.published}", found.source)
    if found.repository:
        say(f"{found.repository}, commit {found.commit}")
    say(found.machine)
    say(*(f"  {name}: {text}" for name, text in found.environments.items()), "")
    remarks = list(dict.fromkeys(text for figure in figures for text in _remarks(figure)))
    numbers = {text: str(number) for number, text in enumerate(remarks, start=1)}
    rows = [
        (
            one.benchmark,
            one.metric,
            " ".join(f"{name}={value}" for name, value in one.labels.items()),
            one.environment,
            quantity(one),
            "" if one.n is None else str(one.n),
            ratio_of(found, one),
            one.printed,
            ",".join(numbers[text] for text in _remarks(one)),
        )
        for one in figures
    ]
    say(table(rows, ("benchmark", "metric", "of", "environment", "value", "n", "ratio", "printed as", "note")))
    if found.baseline:
        say("", f"ratio: the value as a multiple of that of {found.baseline}")
    if remarks:
        say("", *(f"{number}  {text}" for text, number in numbers.items()))
    if found.remarks:
        say("", "what is wrong with it:", *(f"- {text}" for text in found.remarks))


def ratio_of(report: Report, figure: Figure) -> str:
    """A result as a multiple of that of its baseline; "" where there is none."""
    ratio = report.ratio(figure)
    return "" if ratio is None else f"{ratio:.3g}"


def quantity(figure: Figure) -> str:
    """A result as text: `5.128 ± 0.013 Gflop/s`, `50 to 200 Gflop/s`, `at least 1 Tflop/s`."""
    from vtax.units import format_number, scale_of

    size = figure.value if figure.value is not None else figure.high or figure.low or 0.0
    factor, unit = scale_of(size, figure.unit)
    if figure.value is not None:
        spread = "" if figure.sd is None else f" ± {format_number(figure.sd / factor, 2)}"
        return f"{format_number(figure.value / factor)}{spread} {unit}".rstrip()
    low, high = (None if edge is None else format_number(edge / factor) for edge in (figure.low, figure.high))
    if low and high:
        return f"{low} to {high} {unit}".rstrip()
    return (f"at least {low} {unit}" if low else f"at most {high} {unit}").rstrip()


def _remarks(figure: Figure) -> tuple[str, ...]:
    corrected = f"corrected: {figure.corrected}" if figure.corrected else ""
    return tuple(text for text in (corrected, figure.caution) if text)
