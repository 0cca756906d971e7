"""vtax schema: the JSON Schema of a study."""

from __future__ import annotations


def schema() -> None:
    """Print the JSON Schema of a study file, for editors and scripts.

    \b
    Example:  vtax schema > study.schema.json
    """
    from vtax.cli.console import print_json
    from vtax.planning.schema import json_schema

    print_json(json_schema())
