"""startup: what creating a cluster, keeping it and destroying it cost, from what vtax sees of it; no program runs."""

from __future__ import annotations

from vtax.tools.startup.benchmark import Startup
from vtax.tools.tool import Tool

TOOL = Tool(name="startup", benchmarks=(Startup(),))
