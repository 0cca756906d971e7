"""Records with names that no record accepts, for what must not depend on that: how names are written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from dataclasses import replace as changed
from typing import Any

from vtax.model.record import Record

NAME = "hostilename"


def renamed(content: Any, new: str, old: str = NAME) -> Any:
    """`content` with every `old` in its texts replaced; nothing is validated."""
    if isinstance(content, str):
        return content.replace(old, new) if type(content) is str else content
    if isinstance(content, Record):
        update = {name: renamed(getattr(content, name), new, old) for name in type(content).model_fields}
        return content.model_copy(update=update)
    if isinstance(content, Mapping):
        return {renamed(key, new, old): renamed(value, new, old) for key, value in content.items()}
    if isinstance(content, tuple):
        found = [renamed(one, new, old) for one in content]
        return type(content)(*found) if hasattr(content, "_fields") else tuple(found)
    if is_dataclass(content) and not isinstance(content, type):
        return changed(content, **{one.name: renamed(getattr(content, one.name), new, old) for one in fields(content)})
    return content
