"""vtax on a machine whose clock is set while it runs: the file CLOCK has the seconds by which it is wrong now.

Only this process sees them: setting the real clock would disturb all others.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

real, wrong = time.time, Path(os.environ["CLOCK"])


def jumping() -> float:
    return real() + float(wrong.read_text())


time.time = jumping

from vtax.cli.main import main  # noqa: E402

main()
