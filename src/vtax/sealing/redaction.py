"""A campaign without names of machines, people and places in networks. It is redacted before anything is hashed.

Everything is replaced consistently, and the numbers must stay what they are: a redaction that would change one is
refused. What a campaign may name is described in `names`; a word that no rule can know is given by the user.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from vtax.errors import UsageError, VtaxError
from vtax.evaluation.readings import Readings
from vtax.importing.source import encoding_of
from vtax.model.plan import Plan
from vtax.planning.study import existing_nodes
from vtax.sealing.contents import contents, put
from vtax.sealing.manifest import sealed_file
from vtax.sealing.names import HOSTNAMES, USERS, Replacing, hosts_in, users_in
from vtax.store import Campaign, plan_digest

PLAN, FILES = "plan.json", "files/"
ROOT_HOME = "/root"  # the same on every machine, and in every image
WORDS = "words that were given"
WORD = re.compile(r"[A-Za-z][A-Za-z0-9-]*")


@dataclass(frozen=True)
class Here:
    """The machine and the user that seal, whose names may be anywhere, and words that no rule can know."""

    host: str = ""
    user: str = ""
    home: str = ""
    words: tuple[str, ...] = ()


@dataclass(frozen=True)
class Redacted:
    """How many of each kind were replaced, the files that are not text, of which only hashes are kept, and the words
    that stayed because records need them."""

    counts: Mapping[str, int]
    binary: frozenset[str]
    stayed: tuple[str, ...]


def redact(campaign: Campaign, place: Path, here: Here) -> Redacted:
    """Redact the copy in `place` of a campaign. Raises UsageError where that changed a number or broke a record."""
    replacing = Replacing(_kept(campaign.plan()))
    _learn(replacing, here, campaign, place)
    binary = _rewrite(replacing, campaign, place)
    if _numbers(campaign) != _redacted_numbers(place):
        raise UsageError(
            f"{campaign.directory} cannot be redacted: a number would change",
            detail=f"replaced: {', '.join(sorted(replacing.words)) or 'addresses and serial numbers'}",
            remedy="seal it as it is, or report this",
        )
    return Redacted(replacing.counts, frozenset(binary), tuple(sorted(replacing.stayed)))


def _kept(plan: Plan) -> Iterator[str]:
    """Words of vtax and of the study, which name no machine."""
    yield from (node.name for node in plan.shape.nodes)
    yield from plan.study.machines
    for spec in plan.environments:
        yield from (spec.name, spec.provider)
    for entry in plan.study.benchmarks:
        yield from (entry.name, entry.label, *WORD.findall(entry.label))  # such as the stressor `vm`
    yield from ("logs", "log", "table", "vtax", "host", "node", "linux", plan.study.name)


def _learn(replacing: Replacing, here: Here, campaign: Campaign, place: Path) -> None:
    """Find out which words name something: those that are known here, and what the files themselves prove."""
    for word in here.words:
        replacing.learn(WORDS, word)
    replacing.learn(HOSTNAMES, here.host)
    replacing.learn(USERS, here.user)
    for facts in campaign.about().get("machines", {}).values():
        replacing.learn(HOSTNAMES, facts.get("slurm", {}).get("node", ""))
    study = campaign.plan().study
    for machine in (*study.machines.values(), *existing_nodes(study).values()):
        replacing.learn(USERS, machine.slurm.account if machine.slurm else "")
        user, _, address = machine.ssh.removeprefix("ssh://").rpartition("@")
        replacing.learn(USERS, user)
        replacing.learn(HOSTNAMES, address.rpartition(":")[0] if address.count(":") == 1 else address)
    if here.home not in ("", "/", ROOT_HOME):
        replacing.homes[here.home] = "/home/user-0"
    for trial in campaign.trials(texts=False):
        for node in trial.nodes if trial.imported else ():
            replacing.learn(HOSTNAMES, node)
    for _, content in contents(place):
        text = _text(content)
        if text is not None:
            for host in hosts_in(text[0]):
                replacing.learn(HOSTNAMES, host)
            for user in users_in(text[0]):
                replacing.learn(USERS, user)


def _text(content: bytes) -> tuple[str, str] | None:
    """A file as text, and its encoding; None for what is not text. Every byte of it can be written again."""
    encoding = encoding_of(content[: 64 * 2**10]) if content else "utf-8"
    try:
        return content.decode(encoding, "surrogateescape" if encoding.startswith("utf-8") else "strict"), encoding
    except (UnicodeDecodeError, LookupError):
        return None


def _rewrite(replacing: Replacing, campaign: Campaign, place: Path) -> list[str]:
    """Replace in all files, and all hashes of what changed with it. Returns the files that are not text."""
    binary: list[str] = []
    hashes: dict[str, str] = {}
    found = [name for name, _ in contents(place)]
    for name in (*(n for n in found if n.startswith(FILES)), PLAN, *_others(found)):
        old = (place / name).read_bytes()
        text = _text(old)
        if text is None:
            binary.append(name)
            continue
        shown = replacing.text(text[0])
        for before, after in hashes.items():
            shown = shown.replace(before, after)
        new = shown.encode(text[1], "surrogateescape" if text[1].startswith("utf-8") else "strict")
        if name.startswith(FILES):
            hashes[name.removeprefix(FILES)] = sealed_file(new).sha256
        if name == PLAN:
            new = _with_hash(new, campaign, hashes)
        target = _renamed(replacing, name, hashes)
        if target != name or new != old:
            (place / name).unlink()
            put(place, target, new)
    return binary


def _others(names: Iterable[str]) -> Iterator[str]:
    return (name for name in names if name != PLAN and not name.startswith(FILES))


def _renamed(replacing: Replacing, name: str, hashes: Mapping[str, str]) -> str:
    """What a file is called afterwards: its name is in the records, where the same was replaced."""
    if name.startswith(FILES):
        return f"{FILES}{hashes[name.removeprefix(FILES)]}"
    top, slash, rest = name.partition("/")
    return f"{top}{slash}{replacing.text(rest)}" if rest else name


def _with_hash(text: bytes, campaign: Campaign, hashes: dict[str, str]) -> bytes:
    """The plan with its new hash, which all records are then given. A plan that was changed before stays a changed
    one."""
    content = json.loads(text)
    if campaign.seal(()).intact is not True:
        return text
    old, new = str(content.get("sha256", "")), plan_digest(content)
    if old != new:
        hashes[old] = new
    return text.replace(old.encode(), new.encode())


def _numbers(campaign: Campaign) -> list[tuple[str, float, str]]:
    """Every number of a campaign, in the order of time."""
    read = Readings(campaign, keep=False).all(campaign.trials(texts=False))
    return [(value.metric, value.value, value.unit) for one in read for value in one.measurements]


def _redacted_numbers(place: Path) -> list[tuple[str, float, str]]:
    try:
        return _numbers(Campaign.open(place))
    except (VtaxError, ValueError) as error:
        raise UsageError(
            "the campaign cannot be redacted: its records would be damaged",
            detail=str(error),
            remedy="a host or user with a name that vtax itself uses? Seal it as it is",
        ) from error
