"""Studies to start from, commented: what `vtax init` writes."""

from __future__ import annotations

from importlib.resources import files

PRESETS = ("quick", "standard", "strict", "ladder")


def preset(name: str) -> str:
    """The text of a preset study."""
    return (files("vtax.planning.presets") / f"{name}.toml").read_text(encoding="utf-8")
