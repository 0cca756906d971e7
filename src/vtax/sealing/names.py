"""What in a text names a machine, a person or a place in a network: where to look, and what stands there afterwards."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Iterator

UUID = re.compile(r"(?<![0-9A-Za-z-])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![0-9A-Za-z-])")
MAC = re.compile(r"(?<![0-9A-Za-z:-])[0-9A-Fa-f]{2}(?:[:-][0-9A-Fa-f]{2}){5}(?![0-9A-Za-z:-])")
IPV4 = re.compile(r"(?<![\d.])\d{1,3}(?:\.\d{1,3}){3}(?!\d|\.\d)")
IPV6 = re.compile(r"(?<![0-9A-Za-z:.])(?=[0-9A-Fa-f]{0,4}:[0-9A-Fa-f]{0,4}:)[0-9A-Fa-f:]{2,39}(?![0-9A-Za-z:])")
SERIAL = re.compile(
    r"(?i)(?<![A-Za-z])((?:serial(?:[ _-]?(?:number|num|no))?|(?:asset|service)[ _-]?tag|wwn|wwid|machine[ _-]?id)\b"
    r"[\"']?\.?[ \t]{0,20}[:=][ \t]{0,20}[\"']?)([A-Za-z0-9][A-Za-z0-9.+/_-]{3,79})"
)
FRACTION = re.compile(r"\d{1,15}\.\d{1,15}")  # a measurement, not a serial number
WWN = re.compile(r"(?i)(?<![0-9a-z])(?:naa\.|eui\.|wwn-0x)[0-9a-f]{16,32}(?![0-9a-z])")
HOME = re.compile(r"(?<![\w.-])((?:/home/|/Users/|[A-Za-z]:\\{1,2}Users\\{1,2}))([^/\\\s\"':;,<>|]{1,64})")

_HOST = r"[A-Za-z0-9][A-Za-z0-9_.-]{0,252}"
HOSTS = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\bLinux ({_HOST}) \d+\.\d+",  # uname -a, and what stress-ng and iperf3 make of it
        rf"(?i)\b(?:host|node|domain)[ _-]?name[\"']?[ \t]{{0,20}}[:=][ \t]{{0,20}}[\"']?({_HOST})",
        rf"\"host\": {{0,4}}\"({_HOST})\"",
        r"\[([A-Za-z][A-Za-z0-9_.-]{0,252})[:,]\d{2,10}[\],]",  # mpirun's tags
        rf"\bConnecting to host ({_HOST}), port",
        rf"\bPING ({_HOST}) ",
        rf"^--- ({_HOST}) ping statistics",
    )
)
LOGIN = re.compile(rf"(?<![\w.@-])([A-Za-z_][\w.-]{{0,31}})@({_HOST})(?=[:~ \]\"'])")
ADDRESSES, SERIALS, HOSTNAMES, USERS = "addresses", "serial numbers", "host names", "user names"
KEPT = {"localhost", "localhost.localdomain", "ip6-localhost", "root", "none", "null", "unknown", "true", "false"}


def hosts_in(text: str) -> Iterator[str]:
    """Names of machines that a text proves to be such."""
    for pattern in HOSTS:
        yield from (found[1] for found in pattern.finditer(text))
    yield from (found[2] for found in LOGIN.finditer(text))


def users_in(text: str) -> Iterator[str]:
    """Names of users, from home directories and prompts."""
    yield from (found[2] for found in HOME.finditer(text))
    yield from (found[1] for found in LOGIN.finditer(text))


class Replacing:
    """Replaces what names something, always by the same word. `kept` are words that stay."""

    def __init__(self, kept: Iterable[str] = ()) -> None:
        self.kept = KEPT | {word.lower() for word in kept}
        self.words: dict[str, tuple[str, str]] = {}  # in lower case -> its kind, and what stands there instead
        self.known: dict[str, dict[str, str]] = {}  # kind -> what was found -> what stands there instead
        self.stayed: set[str] = set()  # words that were found, and are kept
        self.homes: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None

    def learn(self, kind: str, word: str) -> None:
        """Replace a word from now on, and the first part of a name of a domain."""
        for one in dict.fromkeys((word.rstrip("."), word.partition(".")[0])):
            key = one.lower()
            if key in self.kept - KEPT:
                self.stayed.add(key)
            if key in self.kept or key in self.words or len(key) < 2 or key.isdecimal() or _address(key):
                continue
            number = sum(of == kind for of, _ in self.words.values()) + 1
            self.words[key] = kind, f"{kind.split()[0]}-{number}"
            self._pattern = None

    def text(self, text: str) -> str:
        """A text without what names something."""
        for home, instead in self.homes.items():
            text = text.replace(home, instead)
        text = UUID.sub(lambda found: self._new("ids", found[0].lower(), "00000000-0000-4000-8000-{:012x}"), text)
        text = MAC.sub(self._mac, text)
        text = IPV4.sub(self._address, text)
        text = IPV6.sub(self._address, text)
        text = WWN.sub(lambda found: self._new(SERIALS, found[0].lower(), "serial-{}"), text)
        text = SERIAL.sub(self._serial, text)
        return self.name(text)

    def name(self, text: str) -> str:
        """A text without the words that are known, such as the name of a file."""
        if self._pattern is None:
            longest_first = sorted(self.words, key=lambda word: (-len(word), word))
            choices = (rf"(?<!_){word}(?!_)" if plain else word for word, plain in map(_choice, longest_first))
            choice = "|".join(choices) or r"(?!)"
            self._pattern = re.compile(rf"(?i)(?<![A-Za-z0-9])(?:{choice})(?![A-Za-z0-9])")
        return self._pattern.sub(self._word, text)

    def _word(self, found: re.Match[str]) -> str:
        kind, instead = self.words[found[0].lower()]
        self.known.setdefault(kind, {})[found[0].lower()] = instead
        return instead

    @property
    def counts(self) -> dict[str, int]:
        return {kind: len(found) for kind, found in sorted(self.known.items())}

    def _new(self, kind: str, found: str, form: str) -> str:
        """What stands instead of something that was found, with its number among those of its kind."""
        mine = self.known.setdefault(kind, {})
        return mine.setdefault(found, form.format(len(mine) + 1))

    def _mac(self, found: re.Match[str]) -> str:
        digits = found[0].lower().replace("-", ":")
        if digits in ("00:00:00:00:00:00", "ff:ff:ff:ff:ff:ff"):
            return found[0]
        number = self._new(ADDRESSES, digits, "{}")
        return f"02:00:00:00:{int(number) // 256 % 256:02x}:{int(number) % 256:02x}"

    def _address(self, found: re.Match[str]) -> str:
        """An address of the networks for benchmarks and for documentation (RFC 2544, RFC 3849) instead of a real one.
        Those that are the same everywhere, and masks, stay."""
        known = _address(found[0])
        if known is None or known.is_loopback or known.is_unspecified or str(known).startswith("255."):
            return found[0]
        number = int(self._new(ADDRESSES, str(known), "{}"))
        if known.version == 6:
            return f"2001:db8::{number:x}"
        return str(ipaddress.IPv4Address("198.18.0.0") + number % 2**17)

    def _serial(self, found: re.Match[str]) -> str:
        """Digits alone become other digits, since they may be a number of JSON."""
        value = found[2]
        if value.startswith("serial-") or value.lower() in self.kept or FRACTION.fullmatch(value):
            return found[0]
        new = self._new(SERIALS, value.lower(), "serial-{}")
        return found[1] + ("9" * len(value) if value.isdecimal() else new)


def _choice(word: str) -> tuple[str, bool]:
    """A word as a pattern, and whether it has letters alone: then it may be a part of names such as `events_rate`.
    Others are names also next to an underscore, as in `tcp_node02.txt`."""
    return re.escape(word), word.isalpha()


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None
