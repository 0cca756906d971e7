"""iozone: rates of file operations."""

from vtax.tools.iozone import log_reader, logs
from vtax.tools.iozone.benchmark import Iozone
from vtax.tools.tool import LogFormat, Tool

TOOL = Tool(
    name="iozone",
    benchmarks=(Iozone(),),  # type: ignore[arg-type]
    logs=(
        LogFormat(
            "iozone", log_reader.read, logs.starts, first='\t "I', begins=logs.starts, ends=logs.ends, together=True
        ),
        LogFormat(
            "iozone, no header",
            log_reader.headerless,
            logs.starts_headerless,
            first='0123456789 \t\v\f,;"Ww',
            outside=True,
        ),
    ),
    packages=("iozone3",),
    programs=("iozone",),
    versions={"iozone_version": "iozone"},
)
