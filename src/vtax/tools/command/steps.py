"""The steps of an entry with an own command: files and setup, services, preparation, the run, cleanup. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from vtax.launchers.base import Launcher, ranks_for
from vtax.model.nodes import Phase, Target
from vtax.model.outside import MEMORY_PEAK
from vtax.model.plan import InputFile, Ready, Service, Step
from vtax.providers.base import WORKLOAD
from vtax.tools.benchmark import GRACE_S
from vtax.tools.command import templates
from vtax.tools.command.metric_table import outputs
from vtax.tools.command.params import CommandParams, CommandTable, ReadyTable, ServiceTable
from vtax.tools.command.places import Places

USAGE = "usage.json"  # what vtax-run counted
SUPERVISED = "vtax-supervise"
ENTERED = "vtax-run"
SETUP_S, PREPARE_S, RUN_S = 1800.0, 600.0, 600.0  # time limits where the study has none
OPEN, CLOSED = "1777", "0755"  # rights of a directory in which another user writes, or root alone

Argv = tuple[str, ...]


class Steps:
    """What runs on one target in one environment. Addresses of nodes are all that depends on the environment."""

    def __init__(self, params: CommandParams, target: Target, launcher: Launcher) -> None:
        self.params, self.target, self.launcher = params, target, launcher
        self.places = Places(params, target)

    def all(self) -> tuple[Step, ...]:
        setup = (*self._placing(), *self._several(self.params.setup, Phase.SETUP, self.places.setup, SETUP_S))
        prepare = self._several(self.params.prepare, Phase.PREPARE, self.places.run, PREPARE_S)
        cleanup = self._several(self.params.cleanup, Phase.CLEANUP, self.places.run, PREPARE_S)
        run = self._run()
        after_s = sum(step.timeout_s for step in (*prepare, run, *cleanup))
        ready_s = sum(one.ready.timeout if one.ready else 0.0 for one in self.params.services)
        services = tuple(self._service(one, after_s + ready_s + 2 * GRACE_S) for one in self.params.services)
        return (*setup, *services, *prepare, run, *cleanup)

    def _placing(self) -> tuple[Step, ...]:
        """Files and the rights of the directory, on every node; nothing where root finds the directory as it is."""
        files = tuple(InputFile(name=file.name, sha256=file.sha256) for file in self.params.files)
        if not files and self.params.user is None and not self.params.image:
            return ()
        rights = CLOSED if self.params.user is None and not self.params.image else OPEN
        runs = tuple(file.name for file in self.params.files if file.executable)
        argv = ("chmod", "--", rights, ".")
        mark = ("sh", "-c", 'chmod "$1" . && shift && chmod 0755 "$@"', "sh", rights, *runs)
        chosen = mark if runs else argv
        command = (SUPERVISED, ENTERED, "--", *chosen)
        return (Step(nodes=self.target.names, argv=command, timeout_s=GRACE_S, inputs=files, phase=Phase.SETUP),)

    def _several(
        self, commands: Sequence[Argv | CommandTable], phase: Phase, node: str, limit_s: float
    ) -> tuple[Step, ...]:
        steps = []
        for one in commands:
            table = one if isinstance(one, CommandTable) else CommandTable(command=one)
            place = self.places.node(table.on, node)
            argv = self._command(table.command, place)
            steps.append(Step(nodes=(place,), argv=argv, timeout_s=table.timeout or limit_s, phase=phase))
        return tuple(steps)

    def _service(self, table: ServiceTable, limit_s: float) -> Step:
        node = self.places.service(table)
        image = self.params.image if table.image is None else table.image
        argv = self._command(table.command or (), node, image=bool(image), options=("--control",))
        ready = None if table.ready is None else self._ready(table.ready, node, image=bool(image))
        return Step(
            nodes=(node,),
            argv=argv,
            timeout_s=limit_s,
            background=True,
            service=Service(ready=ready, stop=table.stop, stop_s=table.stop_timeout, exits=table.exits),
        )

    def _ready(self, table: ReadyTable, node: str, *, image: bool) -> Ready:
        port = table.port if table.port is None or isinstance(table.port, int) else int(self._filled(table.port, node))
        command = None if table.command is None else self._command(table.command, node, image=image)
        return Ready(port=port, line=table.line, command=command, timeout_s=table.timeout)

    def _run(self) -> Step:
        run, node = self.params.running, self.places.run
        ranks = None if run.ranks_per_node is None else ranks_for(self.target.nodes, run.ranks_per_node)
        words = self._words(run.command or (), node)
        if ranks is not None:
            words = self.launcher.argv(words, self.target, ranks)
        argv = self._entered(words, node, report=USAGE)
        limit_s = run.timeout or ((run.seconds or 0.0) + 60.0 if run.seconds else max(RUN_S, 10 * (run.estimate or 0)))
        return Step(
            nodes=(node,),
            argv=argv,
            timeout_s=limit_s,
            inputs=() if ranks is None else self.launcher.inputs(self.target, ranks),
            outputs=outputs(self.params.metrics),
            usage=USAGE,
            success=run.success.exit,
            outside=(MEMORY_PEAK, *dict.fromkeys(self.params.perf)),
        )

    def _command(
        self, words: Sequence[str], node: str, *, image: bool | None = None, options: Sequence[str] = ()
    ) -> Argv:
        """The whole command line; no words are the command of the image."""
        return self._entered(self._words(words, node), node, image=image, options=options)

    def _words(self, words: Sequence[str], node: str) -> Argv:
        return tuple(self._filled(word, node) for word in words)

    def _entered(
        self, words: Argv, node: str, *, image: bool | None = None, report: str = "", options: Sequence[str] = ()
    ) -> Argv:
        inside = bool(self.params.image) if image is None else image
        directory = self.params.directory and self._filled(self.params.directory, node)
        entering = (
            *(("--report", report) if report else ()),
            *(("--image", WORKLOAD) if inside else ()),
            *(("--user", self.params.user) if self.params.user is not None else ()),
            *(("--directory", directory) if directory else ()),
            *(word for setting in self.params.env.items() for word in ("--set", self._setting(*setting, node))),
        )
        return (SUPERVISED, *options, ENTERED, *entering, "--", *words)

    def _setting(self, name: str, value: str, node: str) -> str:
        return f"{name}={self._filled(value, node)}"

    def _filled(self, text: str, node: str) -> str:
        server, client = (
            templates.address(one, self.target, one_machine=self.launcher.one_machine)
            for one in (self.places.server, node)
        )
        return templates.filled(text, {**self.params.words, "server": server, "client": client})
