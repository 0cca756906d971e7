"""What entries were run with, side by side: from the facts `settings` and the version of a tool. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vtax.evidence.campaign import Evidence, shown, works
from vtax.evidence.row import Failed
from vtax.model.finding import Severity

Settings = Mapping[tuple[str, str], Mapping[str, str]]


def settings_of(evidence: Evidence, version: str) -> Settings:
    """(environment, label) -> name of a setting -> its values in all runs. The fact `version` is one of them."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for entry, trials in evidence.entries().items():
        values: dict[str, dict[str, None]] = {}
        for facts in evidence.facts(trials):
            known = {"version": facts[version]} if version in facts else {}
            for name, value in (known | facts.get("settings", {})).items():
                values.setdefault(name, {})[str(value)] = None
        found[entry] = {name: shown(list(each)) for name, each in values.items()}
    return found


def differing(evidence: Evidence, settings: Settings) -> Iterator[Failed]:
    """Entries with other settings than in the reference, or the first environment that has the entry, where both are
    known."""
    for label in dict.fromkeys(label for _, label in settings):
        names = [environment for environment, other in settings if other == label]
        first = evidence.counterpart(label) if evidence.counterpart(label) in names else names[0]
        ours = settings[first, label]
        for environment in names:
            theirs = settings[environment, label]
            others = [name for name in theirs if name in ours and theirs[name] != ours[name]]
            if others:
                there, here = (", ".join(f"{name} {each[name]}" for name in others) for each in (theirs, ours))
                yield Failed(f"{label} has {there} in {environment}, and {here} in {first}", environment, label)


def alone(evidence: Evidence, benchmark: str) -> Iterator[Failed]:
    """Work of a benchmark that only the reference or only another environment has."""
    labels: dict[str, set[str]] = {}
    for work in works(evidence, benchmark):
        labels.setdefault(work.environment, set()).add(work.label)
    ours = labels.get(evidence.reference)
    for environment, theirs in labels.items():
        if ours and (missing := sorted(theirs ^ ours)):
            message = f"only one of {environment} and {evidence.reference} has {shown(missing)}"
            yield Failed(message, environment, benchmark, Severity.WARNING)


def sentences(settings: Settings) -> Iterator[str]:
    """One sentence about every entry."""
    for (environment, label), each in settings.items():
        yield f"{label} in {environment}: {', '.join(f'{name} {value}' for name, value in each.items())}"
