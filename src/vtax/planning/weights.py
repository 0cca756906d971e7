"""The composite scores of a study: metrics with weights that were chosen before there were any data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any

from pydantic import Field

from vtax.errors import Mistake
from vtax.model.metric import Direction
from vtax.model.record import Record
from vtax.model.study import BenchmarkSpec, ScoreSpec
from vtax.planning.mistakes import unknown_choice
from vtax.tools import metrics_of

Weight = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class ScoreTable(Record):
    """One `[[scores]]` entry: a weighted geometric mean of ratios. `weights` are by LABEL.METRIC."""

    name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,30}$")]
    weights: dict[str, Weight] = Field(min_length=1)

    @property
    def spec(self) -> ScoreSpec:
        return ScoreSpec(name=self.name, weights=dict(sorted(self.weights.items())))


def score_mistakes(raw: Any, entries: Sequence[BenchmarkSpec]) -> Iterable[Mistake]:
    """Two scores with the same name, and weights of metrics that have no ratio in this study."""
    known = [
        f"{spec.label}.{metric.name}"
        for spec in entries
        for metric in metrics_of(spec.name, spec.params)
        if metric.direction is not Direction.NONE and metric.kind.has_ratio and spec.alone
    ]
    seen: set[str] = set()
    for index, table in enumerate(raw if isinstance(raw, list) else ()):
        path = f"scores[{index}]"
        name, weights = (table.get("name"), table.get("weights")) if isinstance(table, dict) else (None, None)
        if isinstance(name, str) and name in seen:
            yield Mistake(f"{path}.name", f'two scores are called "{name}"', "rename one")
        seen.add(str(name))
        for metric in weights if isinstance(weights, dict) else ():
            if metric not in known:
                yield unknown_choice(f"{path}.weights", metric, known, "metric with a ratio (LABEL.METRIC)")
