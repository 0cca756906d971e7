"""A real campaign of the host, sealed with a real key, checked by others, and planned again."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from vtax.cli.console import paths

pytestmark = pytest.mark.integration

STUDY = """\
name = "tiny"
rounds = 1
baseline = "host"
[environments.host]
provider = "host"
[nodes]
workers = 1
cpus = 1
memory = "256 MiB"
[[benchmarks]]
name = "ping"
scopes = ["pairs"]
"""
