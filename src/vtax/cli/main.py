"""The entry point: a fast path for `--version`, signals, and how errors are printed."""

from __future__ import annotations

import os
import signal
import sys
from types import FrameType

from vtax import __version__

INTERRUPTED = 130


def main() -> None:
    """Run the command line and exit with the code that `vtax.errors` documents."""
    if sys.argv[1:] == ["--version"]:
        print(f"vtax {__version__}")
        return
    sys.exit(_run())


def _run() -> int:
    from vtax.cli.app import app
    from vtax.cli.console import warn
    from vtax.errors import VtaxError

    signal.signal(signal.SIGTERM, _interrupt)
    try:
        app()
    except VtaxError as error:
        warn(f"error: {error}" if error.exit_code != INTERRUPTED else str(error))
        return error.exit_code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except Exception as error:
        import traceback

        warn(traceback.format_exc().rstrip())
        warn(f"error: internal: {type(error).__name__}: {error}")
        warn("  next: this is a defect of vtax; please report it with the lines above")
        return 1
    return 0


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """SIGTERM cleans up like Ctrl-C; a second one is ignored meanwhile."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise KeyboardInterrupt
