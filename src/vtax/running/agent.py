"""vtax on a machine: answers what another vtax asks, and runs the cells that it is given, as they run anywhere.

It talks over its standard input and output. When these close, or the other side is silent for too long, it ends as
after Ctrl-C: whatever it made is removed.
"""

from __future__ import annotations

import os
import queue
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple, cast

from vtax.errors import UsageError, VtaxError
from vtax.facts.host import capacity, host_facts
from vtax.facts.machine import cpu_counters
from vtax.facts.uplink import interfaces
from vtax.image import travel
from vtax.launchers import written
from vtax.machines.channel import Channel, Gone, Message
from vtax.machines.nfs_kernel import cannot_mount, cannot_serve
from vtax.machines.part import PartOrder
from vtax.machines.slurm.relay import Joined
from vtax.model.cluster import Image
from vtax.model.nodes import ClusterShape, HostCapacity
from vtax.model.plan import Plan
from vtax.model.study import EnvironmentSpec
from vtax.paths import Paths
from vtax.providers import provider, resolved, runners
from vtax.providers.base import Provider
from vtax.running import kept, lease, shared
from vtax.running.block import Block
from vtax.running.leftovers import clean, labelled, leftovers
from vtax.running.parts import Parts

ENDING = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
AGAIN_S = 0.2


class Answer(NamedTuple):
    content: Any
    payload: bytes = b""


class Agent:
    """What this machine can be asked: the methods whose names begin with `on_`."""

    def __init__(self, channel: Channel, directory: Path, stack: ExitStack) -> None:
        self.channel, self.stack = channel, stack
        self.paths = Paths(directory, directory / "state")
        self.inbox: queue.Queue[Message] = queue.Queue()
        self.block: Block | None = None
        self.parts = Parts(self.paths, stack)
        self.kept: dict[str, bytes] = {}

    def provider(self, name: str) -> Provider:
        return provider(name, self.paths.runtime)

    def on_hello(self, payload: bytes) -> Any:
        return {"pid": os.getpid()}

    def on_time(self, payload: bytes) -> Any:
        return {"time": time.time()}

    def on_facts(self, payload: bytes) -> Any:
        facts = host_facts(runners=runners())
        return {"facts": facts, "capacity": capacity(facts).model_dump(mode="json")}

    def on_ticks(self, payload: bytes) -> Any:
        return cpu_counters()

    def on_describe(self, payload: bytes, spec: Mapping[str, Any]) -> Any:
        """What the planner wants to know of an environment's provider here."""
        given = EnvironmentSpec.model_validate(spec)
        name = resolved(given.provider, self.paths.runtime)
        one = self.provider(name)
        options = one.options.model_validate(dict(given.options))
        return {
            "provider": name,
            "capabilities": one.capabilities.model_dump(mode="json"),
            "capabilities_with": one.capabilities_with(options).model_dump(mode="json"),
            "slowdown": one.slowdown(options),
            "emulates": one.emulates(options),
            "provision_estimate_s": one.provision_estimate_s,
            "launcher": written(one.launcher(options)),
            "install_hint": one.install_hint,
        }

    def on_check(
        self,
        payload: bytes,
        spec: Mapping[str, Any],
        shape: Mapping[str, Any],
        room: Mapping[str, Any],
        kernel: str,
        shared_path: str,
    ) -> Any:
        """What keeps an environment from working here, and the commands that would make its clusters."""
        given, nodes = EnvironmentSpec.model_validate(spec), ClusterShape.model_validate(shape)
        one = self.provider(given.provider)
        problems = one.check(given, nodes, HostCapacity.model_validate(room))
        return {
            "problems": [problem.model_dump(mode="json") for problem in problems],
            "commands": one.commands(given, nodes, shared_path, kernel),
        }

    def on_lock(self, payload: bytes, owner: str, wait_s: float) -> Any:
        """Hold this machine for one campaign, until this process ends. Raises UsageError, with the owner."""
        lease.hold(self.stack, owner, wait_s)
        return {}

    def on_has_image(self, payload: bytes, recipe: str, digest: str) -> Any:
        return {"there": travel.there(self.paths.images, recipe, digest), "directory": str(self.paths.images)}

    def on_install_image(self, payload: bytes, image: Mapping[str, Any]) -> Any:
        travel.install(self.paths.images, Image.model_validate(image))
        return {}

    def on_keep(self, payload: bytes, sha256: str) -> Any:
        """A file of the study, for the campaign that begins next."""
        self.kept[sha256] = payload
        return {}

    def on_begin(self, payload: bytes, plan: Mapping[str, Any], campaign: str, about: Mapping[str, Any]) -> Any:
        """Begin a part of a campaign: the cells of this machine."""
        whole = Plan.model_validate(plan)
        providers = {spec.name: self.provider(spec.provider) for spec in whole.environments}
        image = travel.local(self.paths.images, str(about["recipe"]))
        self.block = Block(whole, campaign, providers, image, self.paths.runtime, about, self.kept, self)
        self.block.enter(self.stack)
        return {}

    def on_prepare(self, payload: bytes, environments: list[str]) -> Any:
        self._begun().prepare(environments)
        return {}

    def on_round(self, payload: bytes, cells: list[str], pending: Mapping[str, list[str]]) -> Any:
        self._begun().run(cells, pending)
        return {}

    def _begun(self) -> Block:
        if self.block is None:
            raise UsageError("no campaign has begun on this machine", remedy="this is a defect of vtax; please report")
        return self.block

    def on_interfaces(self, payload: bytes) -> Any:
        return [one.model_dump(mode="json") for one in interfaces()]

    def on_create_part(self, payload: bytes, order: Mapping[str, Any]) -> Any:
        return self.parts.create(PartOrder.model_validate(order)).model_dump(mode="json")

    def on_relay(self, payload: bytes, label: str, job: str, nodes: Mapping[str, Any]) -> Any:
        """Start MPI programs for the nodes of a part, in this job, until it is destroyed."""
        self.parts.relay(label, job, {name: Joined(host, tuple(words)) for name, (host, words) in nodes.items()})
        return {}

    def on_write_shared(self, payload: bytes, place: str, token: str) -> Any:
        return {"wrong": shared.written(Path(place), token)}

    def on_read_shared(self, payload: bytes, place: str, token: str) -> Any:
        return {"found": shared.read(Path(place), token)}

    def on_remove_shared(self, payload: bytes, place: str, token: str) -> Any:
        shared.remove(Path(place), token)
        return {}

    def on_nfs(self, payload: bytes) -> Any:
        """Why this machine cannot serve a directory to others, and why it cannot mount one of theirs."""
        return {"serve": cannot_serve(self.paths.runtime), "mount": cannot_mount()}

    def on_serve_share(self, payload: bytes, label: str, provider: str, name: str, clients: list[str]) -> Any:
        self.parts.hold(label, provider).serve(label, name, tuple(clients))
        return {}

    def on_mount_share(self, payload: bytes, label: str, provider: str, name: str, server: str) -> Any:
        self.parts.hold(label, provider).mount(label, name, server)
        return {}

    def on_prepare_part(self, payload: bytes, spec: Mapping[str, Any], shape: Mapping[str, Any], recipe: str) -> Any:
        given, image = EnvironmentSpec.model_validate(spec), travel.local(self.paths.images, recipe)
        self.provider(given.provider).prepare(given, ClusterShape.model_validate(shape), image)
        return {}

    def on_destroy_part(self, payload: bytes, label: str) -> Any:
        self.parts.destroy(label)
        return {}

    def on_pause_part(self, payload: bytes, label: str) -> Any:
        return self.parts.pausing(label).pause()

    def on_resume_part(self, payload: bytes, label: str) -> Any:
        self.parts.pausing(label).resume()
        return {}

    def on_leftovers(self, payload: bytes, everything: bool, images: bool) -> Any:
        found = leftovers(self.paths, everything=everything, among=labelled(self.paths))
        found += kept.here(self.paths) if images else []
        return [[item.provider, item.kind, item.name, item.campaign, item.origin] for item in found]

    def on_clean(self, payload: bytes, everything: bool, images: bool) -> Any:
        found = leftovers(self.paths, everything=everything)
        used = clean(found, self.paths, everything=everything)
        more = kept.here(self.paths) if images else []
        if images:
            kept.remove(more, self.paths, everything=everything)
        return {"removed": len(found) + len(more) - len(used), "kept": [item.name for item in used]}

    def on_diagnose(self, payload: bytes) -> Any:
        """Which providers work here, and what is missing."""
        from vtax.running.doctor import diagnose

        found = diagnose(self.paths)
        making = tuple(one for one in found.providers if not self.provider(one.name).capabilities.away)
        found = found.model_copy(update={"providers": making})
        return {**found.model_dump(mode="json"), "owner": lease.owner()}

    # --- what a part of a campaign says while it runs -----------------------------------------------------------------

    def say(self, content: Mapping[str, Any], payload: bytes = b"") -> None:
        self.channel.send(content, payload)

    def confirmed(self) -> None:
        """Wait until the other side has what was said last."""
        while "stored" not in self.inbox.get().content:
            pass

    def serve(self) -> None:
        """Answer one question after the other, until this process is told to end."""
        while True:
            message = self.inbox.get()
            if "ask" not in message.content:
                continue
            name, arguments = str(message.content["ask"]), dict(message.content["with"])
            method = cast("Callable[..., Any] | None", getattr(self, f"on_{name}", None))
            try:
                if method is None:
                    raise UsageError(f"the agent cannot be asked {name!r}")
                self.say({"answer": method(message.payload, **arguments)})
            except VtaxError as error:
                about = {"message": error.message, "detail": error.detail, "remedy": error.remedy}
                self.say({"error": {"kind": type(error).__name__, **about}})
            except Gone:
                raise
            except Exception as error:  # noqa: BLE001  # as the command line does: it is reported, not lost
                detail = "".join(traceback.format_exception(error)[-3:])
                self.say({"error": {"kind": "VtaxError", "message": f"internal: {error!r}", "detail": detail}})


def main(directory: str) -> None:
    """The whole life of an agent."""
    for number in ENDING:
        signal.signal(number, _interrupt)
    os.umask(0o077)
    channel = Channel(0, os.dup(1))
    os.dup2(2, 1)  # what anything here prints is no message
    try:
        with ExitStack() as stack:
            agent = Agent(channel, Path(directory), stack)
            channel.keep_alive()
            threading.Thread(target=_listen, args=(agent,), daemon=True).start()
            agent.serve()
    except (KeyboardInterrupt, Gone) as error:
        sys.exit(f"the agent ends: {error or 'it was asked to'}")


def _listen(agent: Agent) -> None:
    """Pass on what is heard. When nothing more can be, end this process: its main thread may be in any command. A
    signal that comes when that thread is about to wait does not wake it, so there are more of them; the first that is
    noticed makes the others harmless."""
    try:
        while True:
            agent.inbox.put(agent.channel.receive())
    except (Gone, ValueError, KeyError):
        while True:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(AGAIN_S)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    for other in ENDING:
        signal.signal(other, signal.SIG_IGN)
    raise KeyboardInterrupt
