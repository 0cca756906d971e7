"""Everything that vtax can refuse to do, as one tree.

    VtaxError                      exit code
    ├── UsageError                 2    the command line or a file given by the user is wrong
    │   ├── StudyError             2    the study has mistakes; all of them, with their paths
    │   ├── LeftOut                2    a benchmark cannot run here as it is meant to; a plan goes on without it
    │   └── DamagedError           2    a file of a campaign is missing, cannot be read, or is damaged
    ├── EnvironmentMissing         3    a program, daemon, right or amount of space is missing
    │   ├── ImageError             3    the root file system cannot be built or used
    │   ├── MachineLost            3    a machine of the study no longer answers
    │   └── StoreError             3    the campaign directory cannot be written
    ├── MachineInUse               3    another campaign holds a machine of the study
    ├── MachineGone                3    it did not come back, and clusters on several machines need all of them
    ├── ProvisionError             3    a cluster did not become ready
    │   ├── NotMatched             3    it became ready, but not as the plan says
    │   └── PauseError             3    it cannot be paused, or does not resume
    ├── CommandError               3    a command that had to succeed failed
    ├── ParseError                 4    a tool's output is not what the tool prints when it succeeds
    ├── TrialsFailed               4    the campaign is complete, but some trials failed
    ├── SealFailed                 1    a sealed campaign is not what it claims
    ├── GateFailed                 5    a gate failed
    └── Interrupted              130    Ctrl-C, SIGTERM or SIGHUP, after cleaning up

Each says what happened (`message`), why (`detail`) and what to do next (`remedy`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

LONGEST_MESSAGE, LONGEST_HINT = 400, 4000  # characters of a mistake; a hint lists what is allowed


class VtaxError(Exception):
    """Root of the tree: a message for a person, the evidence, and the next step."""

    exit_code = 1

    def __init__(self, message: str, *, detail: str = "", remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.remedy = remedy

    def __str__(self) -> str:
        lines = [self.message]
        if self.detail:
            lines += [f"  {line}" for line in self.detail.rstrip().splitlines()]
        if self.remedy:
            lines.append(f"  next: {self.remedy}")
        return "\n".join(lines)


class UsageError(VtaxError):
    exit_code = 2


@dataclass(frozen=True)
class Mistake:
    """One mistake in a study: where it is, what is wrong, what is allowed."""

    path: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        message, hint = _shortened(self.message, LONGEST_MESSAGE), _shortened(self.hint, LONGEST_HINT)
        return f"{_shortened(self.path, LONGEST_MESSAGE)}: {message}" + (f" ({hint})" if hint else "")


def _shortened(text: str, longest: int) -> str:
    """A text that may contain a value of any length."""
    half = longest // 2
    return text if len(text) <= longest else f"{text[:half]} ... {text[-half:]}"


class StudyError(UsageError):
    """Every mistake of a study at once."""

    def __init__(self, source: str, mistakes: Sequence[Mistake]) -> None:
        count = f"{len(mistakes)} mistake" + ("s" if len(mistakes) != 1 else "")
        super().__init__(
            f"study {source}: {count}",
            detail="\n".join(str(mistake) for mistake in mistakes),
            remedy="fix the lines above; `vtax schema` prints every key, `vtax init` a commented example",
        )
        self.mistakes = tuple(mistakes)


class LeftOut(UsageError):
    """What a study leaves open has no answer on this machine for one benchmark: the plan goes on without it."""


class DamagedError(UsageError):
    """A file of a campaign is missing, cannot be read, or is damaged."""


class EnvironmentMissing(VtaxError):
    exit_code = 3


class ImageError(EnvironmentMissing):
    """The root file system cannot be built or used."""


class MachineLost(EnvironmentMissing):
    """A machine of the study no longer answers."""


class MachineGone(VtaxError):
    """A machine that no cluster can do without did not come back: the campaign waits for `--resume`."""

    exit_code = 3


class MachineInUse(VtaxError):
    """Another campaign holds a machine: this one cannot begin."""

    exit_code = 3


class StoreError(EnvironmentMissing):
    """The campaign directory cannot be written: rights, space, or its location."""


class ProvisionError(VtaxError):
    exit_code = 3


class NotMatched(ProvisionError):
    """The cluster is up, but not as the plan says."""


class PauseError(ProvisionError):
    """A cluster cannot be paused, or does not resume."""


class CommandError(VtaxError):
    exit_code = 3


class ParseError(VtaxError):
    exit_code = 4


class TrialsFailed(VtaxError):
    exit_code = 4


class SealFailed(VtaxError):
    exit_code = 1


class GateFailed(VtaxError):
    exit_code = 5


class Interrupted(VtaxError):
    exit_code = 130


PLUGIN_FAILURES = (  # what a plug-in may raise: it is reported and left out, the others continue
    ArithmeticError,
    AssertionError,
    AttributeError,
    EOFError,
    ImportError,
    LookupError,
    NameError,
    OSError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    VtaxError,
)
