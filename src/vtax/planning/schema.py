"""The JSON Schema of a study file, from the records that the file is checked with, so that the two cannot disagree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from vtax.planning.selections import keys_of
from vtax.planning.study_tables import BenchmarkTable, EnvironmentTable, StudyFile
from vtax.planning.workloads import KEY, workloads
from vtax.providers import option_models
from vtax.tools import benchmarks


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a study file, with every provider's options and every benchmark's parameters."""
    schema = StudyFile.model_json_schema()
    definitions = schema.setdefault("$defs", {})

    def own(model: type[BaseModel], settled: Mapping[str, Any], common: Mapping[str, Any]) -> dict[str, Any]:
        part = model.model_json_schema()
        definitions.update(part.pop("$defs", {}))
        part["properties"] = {**settled, **common, **part.get("properties", {})}
        part["required"] = sorted({*part.get("required", ()), *settled})
        part["additionalProperties"] = False
        return part

    table = BenchmarkTable.model_json_schema()
    definitions.update(table.pop("$defs", {}))
    common = {key: value for key, value in table["properties"].items() if key not in ("name", KEY)}
    every = EnvironmentTable.model_json_schema()
    definitions.update(every.pop("$defs", {}))
    environments = [
        own(model, {"provider": {"const": name}}, {key: every["properties"][key] for key in keys_of(model)})
        for name, model in sorted(option_models().items())
    ]
    entries = [own(known.params, {"name": {"const": name}}, common) for name, known in sorted(benchmarks().items())]
    commands = next(one.params for one in benchmarks().values() if getattr(one, "own_code", False))
    entries.append(own(commands, {KEY: {"enum": sorted(workloads())}}, common))
    schema["properties"]["environments"]["additionalProperties"] = {"oneOf": environments}
    schema["properties"]["environments"].pop("patternProperties", None)
    schema["properties"]["benchmarks"]["items"] = {"oneOf": entries}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "vtax study",
        **{key: value for key, value in schema.items() if key != "title"},
    }
