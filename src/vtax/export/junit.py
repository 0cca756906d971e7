"""JUnit XML of gates and verdicts, for CI servers: the elements and attributes that Jenkins and GitLab read. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree as xml

from vtax.analysis.gates import Case, GateResult, Result, Subject

# XML 1.0 cannot represent these characters, not even escaped.
UNWRITABLE = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def junit(title: str, judged: Sequence[GateResult], subjects: Sequence[Subject]) -> bytes:
    """A document with a suite of gates, a test case for each comparison under each gate, and a suite of verdicts, a
    test case for each primary comparison. A gate that is not resolved, and a missing verdict, are skipped tests."""
    top = xml.Element("testsuites", name=clean(title))
    gates = [(f"gate: {one.gate.text}", case) for one in judged for case in one.cases or (_whole(one),)]
    primary = [("verdict", _verdict(subject)) for subject in subjects if subject.primary]
    for name, cases in (("gates", gates), ("verdicts", primary)):
        if cases:
            _suite(top, f"{title} {name}", cases)
    for count in ("tests", "failures", "errors", "skipped"):
        top.set(count, str(sum(int(suite.get(count, "0")) for suite in top)))
    xml.indent(top)
    return bytes(xml.tostring(top, encoding="utf-8", xml_declaration=True)) + b"\n"


def _suite(top: xml.Element, name: str, cases: Sequence[tuple[str, Case]]) -> None:
    failed = sum(case.result is Result.FAILED for _, case in cases)
    skipped = sum(case.result is Result.NOT_RESOLVED for _, case in cases)
    counts = {"tests": str(len(cases)), "failures": str(failed), "errors": "0", "skipped": str(skipped), "time": "0"}
    suite = xml.SubElement(top, "testsuite", {"name": clean(name), **counts})
    for group, case in cases:
        entry = xml.SubElement(suite, "testcase", classname=clean(group), name=clean(case.name), time="0")
        if case.result is Result.FAILED:
            xml.SubElement(entry, "failure", message=clean(case.message), type="gate").text = clean(case.message)
        elif case.result is Result.NOT_RESOLVED:
            xml.SubElement(entry, "skipped", message=clean(f"not resolved: {case.message}"))
        else:
            xml.SubElement(entry, "system-out").text = clean(case.message)


def _whole(one: GateResult) -> Case:
    """The test case of a gate without cases, because it passed."""
    return Case(one.gate.text, one.result, "nothing of the kind was found")


def _verdict(subject: Subject) -> Case:
    return Case(subject.name, Result.HOLDS if subject.settled else Result.NOT_RESOLVED, subject.sentence)


def clean(text: str) -> str:
    """The text with U+FFFD in place of characters that XML cannot represent."""
    return UNWRITABLE.sub("\ufffd", text)
