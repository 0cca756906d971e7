"""The entry point: a fast path for `--version`, signals, and how errors are printed."""

from __future__ import annotations

import errno
import os
import signal
import sys
from types import FrameType

from vtax import __version__

INTERRUPTED = 130
MISSING = 3  # as that of EnvironmentMissing
FULL = (errno.ENOSPC, errno.EDQUOT)
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def main() -> None:
    """Run the command line and exit with the code that `vtax.errors` documents."""
    if sys.argv[1:] == ["--version"]:
        print(f"vtax {__version__}")
        return
    try:
        code = _run()
    except ModuleNotFoundError as error:  # maybe of what prints errors
        print(f"error: the Python package {error.name} is not installed", file=sys.stderr)
        print("  next: run scripts/bootstrap, which installs what this version of vtax needs", file=sys.stderr)
        code = MISSING
    sys.exit(code)


def _run() -> int:
    from vtax.cli.app import app
    from vtax.cli.console import warn
    from vtax.errors import EnvironmentMissing, VtaxError

    for number in ENDING:
        if signal.getsignal(number) is not signal.SIG_IGN:  # by nohup, or by a shell for what is in its background
            signal.signal(number, _interrupt)
    try:
        app()
    except VtaxError as error:
        warn(f"error: {error}" if error.exit_code != INTERRUPTED else str(error))
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        if error.errno not in FULL:
            return _internal(error)
        warn(f"error: {error.filename or 'a temporary file'} cannot be written: {error.strerror}")
        warn("  next: free some space; what is recorded is safe, and `vtax run --resume` goes on with a campaign")
        return EnvironmentMissing.exit_code
    except MemoryError:
        warn("error: there is not enough memory")
        warn("  next: end other programs, or give fewer files at a time")
        return EnvironmentMissing.exit_code
    except ModuleNotFoundError as error:
        if (error.name or "vtax").partition(".")[0] == "vtax":
            return _internal(error)
        raise
    except Exception as error:
        return _internal(error)
    return 0


def _internal(error: Exception) -> int:
    import traceback

    from vtax.cli.console import warn

    warn("".join(traceback.format_exception(error)).rstrip())
    warn(f"error: internal: {type(error).__name__}: {error}")
    warn("  next: this is a defect of vtax; please report it with the lines above")
    return 1


def _interrupt(number: int, _frame: FrameType | None) -> None:
    """SIGTERM and a terminal that is gone clean up like Ctrl-C; a second one of any kind is ignored meanwhile."""
    for other in ENDING:
        signal.signal(other, signal.SIG_IGN)
    if number == signal.SIGHUP:
        _leave_terminal()
    raise KeyboardInterrupt


def _leave_terminal() -> None:
    """A terminal that is gone refuses every line, which would end the cleaning up."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for descriptor in (1, 2):
        if os.isatty(descriptor):
            os.dup2(nowhere, descriptor)
    os.close(nowhere)
