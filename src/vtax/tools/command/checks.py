"""Mistakes in an entry with an own command that no single table shows. Paths are relative to the entry."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from vtax.errors import Mistake
from vtax.model.metric import Kind
from vtax.model.study import BenchmarkSpec
from vtax.tools.command import templates
from vtax.tools.command.metric_table import declared, outputs
from vtax.tools.command.params import CommandParams, CommandTable
from vtax.tools.command.places import known, roles_of

FORMS = 'such as command = ["sh", "work.sh"]: a program and its arguments, each a string of its own'


def mistakes(params: CommandParams, spec: BenchmarkSpec, *, workload: bool) -> Iterator[Mistake]:
    """Everything that is wrong; `workload` says whether the study has an image of its own."""
    if params.words:
        yield Mistake("words", "the plan fills it in", "own words in braces are `values`")
    yield from _without_command(params, workload=workload)
    yield from _roles(params, spec)
    yield from _words(params)
    yield from _files(params)
    yield from _kinds(params)
    if params.running.ranks_per_node is not None and (params.user is not None or params.image):
        why = "mpirun reaches other nodes as root, with the programs of the root file system"
        yield Mistake("run.ranks_per_node", why, "leave `user` and `image` out")


def _without_command(params: CommandParams, *, workload: bool) -> Iterator[Mistake]:
    image = workload if params.image is None else params.image
    if image and not workload:
        yield Mistake("image", "the study has no image of its own", "add [image.workload], or leave `image` out")
    if params.running.command is None and not image:
        yield Mistake("run.command", "is missing", FORMS)
    for index, service in enumerate(params.services):
        own = image if service.image is None else service.image
        if own and not workload and service.image:
            yield Mistake(f"services[{index}].image", "the study has no image of its own", "add [image.workload]")
        if service.command is None and not own:
            yield Mistake(f"services[{index}].command", "is missing", "only a service of an image may leave it out")


def _roles(params: CommandParams, spec: BenchmarkSpec) -> Iterator[Mistake]:
    given: list[tuple[str, str | None]] = [("run.on", params.running.on)]
    given += [(f"services[{index}].on", one.on) for index, one in enumerate(params.services)]
    for name in ("setup", "prepare", "cleanup"):
        several: Sequence[object] = getattr(params, name)
        given += [(f"{name}[{i}].on", one.on) for i, one in enumerate(several) if isinstance(one, CommandTable)]
    scopes = ", ".join(scope.value for scope in spec.scopes)
    for path, role in given:
        if role is not None and not known(role, spec.scopes):
            allowed = ", ".join(roles_of(spec.scopes)) or "none: give each scope an entry of its own"
            yield Mistake(path, f'"{role}" is not a node in scope {scopes}', f"allowed: {allowed}")


def _words(params: CommandParams) -> Iterator[Mistake]:
    for name in params.values:
        if name in templates.NAMES:
            yield Mistake(f"values.{name}", f"{{{name}}} has a meaning already: {templates.NAMES[name]}", "rename it")
    names = {*templates.NAMES, *params.values} - ({"seconds"} if params.running.seconds is None else set())
    for path, text in _texts(params):
        try:
            templates.check(text, names)
        except templates.Unknown as error:
            missing = "{seconds}" in text and params.running.seconds is None
            yield Mistake(path, "{seconds} needs `seconds` in `run`" if missing else str(error))


def unused(params: CommandParams) -> Iterator[Mistake]:
    """Words of the study's own that change nothing: entries of a `matrix` would be alike."""
    for name in params.values:
        if not any(f"{{{name}}}" in text for _, text in _texts(params)):
            yield Mistake(f"values.{name}", f"no command uses {{{name}}}", "use it, or leave it out (of `matrix` too)")


def _texts(params: CommandParams) -> Iterator[tuple[str, str]]:
    """Every text with words in braces, and where it is."""

    def words(path: str, command: Collection[str] | None) -> Iterable[tuple[str, str]]:
        return ((f"{path}[{index}]", word) for index, word in enumerate(command or ()))

    yield from words("command" if params.command else "run.command", params.running.command)
    for name in ("setup", "prepare", "cleanup"):
        for index, one in enumerate(getattr(params, name)):
            table = isinstance(one, CommandTable)
            yield from words(f"{name}[{index}]{'.command' if table else ''}", one.command if table else one)
    for index, service in enumerate(params.services):
        yield from words(f"services[{index}].command", service.command)
        if service.ready is not None:
            yield from words(f"services[{index}].ready.command", service.ready.command)
            if isinstance(service.ready.port, str):
                yield f"services[{index}].ready.port", service.ready.port
    yield from ((f"env.{name}", value) for name, value in params.env.items())
    if params.directory is not None:
        yield "directory", params.directory


def _files(params: CommandParams) -> Iterator[Mistake]:
    taken = {"usage.json", *outputs(params.metrics)}
    for index, file in enumerate(params.files):
        if file.name in taken:
            yield Mistake(f"files[{index}].to", f"{file.name} is there already", "give each file a name of its own")
        taken.add(file.name)


def _kinds(params: CommandParams) -> Iterator[Mistake]:
    """Metrics that do not go with work for a fixed time, or with fixed work."""
    for name in sorted({metric.name for metric in declared(params.metrics)} & set(params.perf)):
        yield Mistake("perf", f"{name} is the name of a metric of this entry too", "give that metric another name")
    timed = params.running.seconds is not None
    primary = [metric for metric in declared(params.metrics) if metric.primary]
    if timed and all(metric.name == "wall" for metric in primary):
        why = "a run for a fixed time takes that time: its wall time decides nothing"
        yield Mistake("metrics", why, "add a metric, or leave `seconds` out of `run` when the work is fixed")
    for index, table in enumerate(params.metrics):
        for kind in {metric.kind for metric in table.metrics}:
            if table.reader is None and kind is (Kind.RATE_FIXED_WORK if timed else Kind.RATE_FIXED_TIME):
                hint = "leave `seconds` out of `run`" if timed else "say how long in `run`: seconds = 20"
                why = f'"{kind}" is not what this run does'
                yield Mistake(f"metrics[{index}].kind", why, f"{hint}, or change the kind")
