"""Patterns of users: what they may be, what a mistake says, and that no text makes one slow."""

from __future__ import annotations

import time

import pytest

from vtax.tools.patterns import LARGEST_PROGRAM, LONGEST, Pattern, compile_pattern, encoded

MB = 1_000_000
LIMIT_S = 2.0


def groups(pattern: str, text: str) -> list[str]:
    data = encoded(text)
    return [data[slice(*match.group)].decode() for match in compile_pattern(pattern).matches(data)]


def test_the_first_group_of_every_match_is_found() -> None:
    assert groups(r"tps = ([0-9.]+)", "tps = 1.5\ntps = 2\n") == ["1.5", "2"]


def test_a_line_has_a_beginning_and_an_end() -> None:
    assert groups(r"^n ([0-9]+)$", "xn 1\nn 2\nn 3 x\n") == ["2"]


def test_positions_are_those_of_bytes() -> None:
    (match,) = compile_pattern("µ([0-9])").matches(encoded("äµ7"))
    assert match == (2, 5, (4, 5))


def test_a_group_that_takes_no_part_has_no_place() -> None:
    (match,) = compile_pattern("(a)|b").matches(b"b")
    assert match.group == (-1, -1)


def test_a_pattern_without_groups_can_be_looked_for() -> None:
    assert compile_pattern("ready").found("server is ready\n")
    assert not compile_pattern("^ready").found("server is ready\n")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (r"(?=a)b", "look-ahead"),
        (r"(?<!a)b", "look-ahead and look-behind are not supported"),
        (r"(a)\1", "backreferences are not supported"),
        (r"(?P<x>a)(?P=x)", "backreferences are not supported"),
        (r"a++", "possessive"),
        (r"(?>a)", "possessive repetitions and atomic"),
        (r"a\Z", r"\z"),
        (r"(?#c)a", "comments are not supported"),
        (r"(a", "missing )"),
        (r"a)(b", "unexpected )"),
        (r"x{2000}", "invalid repetition size"),
        (r"(x{100}){10}", "invalid repetition size|too large"),
        (r"x{900}", "too large"),
        ("", "is empty"),
        ("a" * (LONGEST + 1), "at most 1000 characters"),
        ("\udc80", "not valid Unicode"),
    ],
)
def test_what_cannot_be_used_is_a_mistake_with_the_reason(text: str, words: str) -> None:
    with pytest.raises(ValueError) as caught:
        compile_pattern(text)
    assert any(word in str(caught.value) for word in words.split("|")), str(caught.value)


def test_a_mistake_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError):
        compile_pattern("(a")
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"(x+x+)+y", "x" * MB),
        (r"^(([a-z])+.)+[A-Z]([a-z])+$", "a" * MB),
        (r"(.*)(.*)(.*)(.*)(.*)(.*)x$", "abc " * (MB // 4)),
        (r"(?:a|aa)+([0-9])", "a" * MB),
        (r"(a?){50}a{50}([0-9])", "a" * MB),
        (r"([0-9]+)\s*\s*\s*\s*!", "1" + " " * MB),
    ],
)
def test_no_text_makes_a_pattern_slow(pattern: str, text: str) -> None:
    """Python's re needs minutes for some of these, and cannot be interrupted."""
    began = time.process_time()
    assert list(compile_pattern(pattern).matches(encoded(text))) == []
    assert time.process_time() - began < LIMIT_S


def test_programs_are_bounded() -> None:
    assert Pattern("a").size < LARGEST_PROGRAM
    assert compile_pattern("x{400}").size <= LARGEST_PROGRAM
