"""Command lines above a run: which program they start, and what they say of ranks, hosts, binding, threads. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from functools import lru_cache

from pydantic import JsonValue

from vtax.tools import commands
from vtax.tools.reading import Line

LAUNCHERS = ("mpirun", "mpiexec", "srun")

LONGEST = 2000
AFTER_PROMPT = re.compile(r"^(?:[^\s]{0,200}[$#%>]|\[[^\]]{1,200}\][$#]) +(.{1,2000})$")
USER_AT = re.compile(r"^[\w.-]{1,60}@([\w.-]{1,60}):")


@lru_cache(maxsize=8)
def _prompt(programs: tuple[str, ...]) -> re.Pattern[str]:
    names = "|".join(map(re.escape, programs))
    return re.compile(
        rf"^(?:[^\s]{{0,200}}[$#%>]|\[[^\]]{{1,200}}\][$#]) +(?=\S)(?:.{{0,2000}}[ /])?(?:{names})(?:$| )"
    )


def prompt() -> re.Pattern[str]:
    """Matches a command at a prompt that starts a program of a tool, under `mpirun` or not."""
    return _prompt(commands())


def command_facts(lines: Iterable[Line]) -> dict[str, JsonValue]:
    """The command of a run that was started at a prompt, and what it promises. Nothing without a prompt."""
    facts: dict[str, JsonValue] = {}
    pattern = prompt()
    for line in lines:
        if not ("$" in line.text or "#" in line.text or ">" in line.text):  # cheap: there are millions of lines
            continue
        if pattern.match(line.text) is None or (found := AFTER_PROMPT.match(line.text)) is None:
            continue
        facts = {"command": found[1].strip(), "command_line": line.number}
        if host := USER_AT.match(line.text):
            facts["prompt_host"] = host[1]
        facts |= launch_facts(found[1])
    return facts


def launch_facts(command: str) -> dict[str, JsonValue]:
    """Ranks, hosts and binding that a command asks MPI for."""
    words = words_of(command)
    facts: dict[str, JsonValue] = {}
    for name, keys in (
        ("ranks_asked", ("-np", "--np", "-n", "--ntasks")),
        ("hosts", ("--host", "-host", "-H")),
        ("bind_to", ("--bind-to", "-bind-to")),
        ("map_by", ("--map-by", "-map-by")),
    ):
        value = option(words, *keys)
        if value and (words[0].endswith(LAUNCHERS)):
            facts[name] = int(value) if name == "ranks_asked" and value.isdecimal() else value
    return facts


@lru_cache(maxsize=256)
def words_of(command: str) -> list[str]:
    """The words of a command line; plain words when its quotes do not close."""
    try:
        return shlex.split(command[:LONGEST]) or [""]
    except ValueError:
        return command[:LONGEST].split() or [""]


def option(words: list[str], *names: str) -> str:
    """The value of the first of `names` that a command contains, as `--name value` or `--name=value`; else ""."""
    for place, word in enumerate(words):
        for name in names:
            if word == name and place + 1 < len(words):
                return words[place + 1]
            if word.startswith(f"{name}="):
                return word.partition("=")[2]
    return ""
