"""Runs command lines of vtax one after another, each in a process of its own that has everything imported already.

driver.py DIRECTORY LINES: what the n-th one prints goes to n.txt, its process to n.pid, how it ended to n.json.
"""

import json
import os
import sys
from pathlib import Path

import vtax.pipeline
import vtax.publishing.server  # noqa: F401
from vtax.cli import app  # noqa: F401
from vtax.cli.main import main


def run(words: list[str], output: Path) -> None:
    """Become a command; does not return."""
    descriptor = os.open(output, os.O_WRONLY | os.O_CREAT, 0o644)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    sys.argv = ["vtax", *words]
    code = 1
    try:
        main()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


for number, words in enumerate(json.loads(sys.argv[2])):
    said = Path(sys.argv[1])
    process = os.fork()
    if process == 0:
        run(words, said / f"{number}.txt")
    (said / f"{number}.pid").write_text(str(process))
    _, status, used = os.wait4(process, 0)
    code = os.waitstatus_to_exitcode(status)
    result = {"code": code, "cpu_s": used.ru_utime + used.ru_stime, "memory_bytes": used.ru_maxrss * 1024}
    (said / f"{number}.json.tmp").write_text(json.dumps(result))
    (said / f"{number}.json.tmp").rename(said / f"{number}.json")
