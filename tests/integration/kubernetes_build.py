"""Programs of Kubernetes and etcd, built once from the Go module proxy: no package of Debian or Python has them.

They are kept outside the tree, in vtax-kubernetes of the user's cache: 430 MB of programs, and 3.5 GB of what Go keeps
to build them again, which may be removed. The first build takes about ten minutes of two CPUs.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from vtax.image import build

VERSION = "v1.33.4"
GO = (1, 24)  # what go.mod of this version asks for
KUBERNETES = ("kube-apiserver", "kubelet", "kube-controller-manager", "kube-scheduler", "kubectl")
PAUSE = "pause"  # holds a pod's network namespace: it waits to be ended
PAUSE_SOURCE = """\
package main

import (
\t"os"
\t"os/signal"
\t"syscall"
)

func main() {
\tended := make(chan os.Signal, 1)
\tsignal.Notify(ended, syscall.SIGINT, syscall.SIGTERM)
\t<-ended
}
"""
MODULE = """\
module lab

go {go}.0

require (
\tgo.etcd.io/etcd/server/v3 {etcd}
\tk8s.io/kubernetes {version}
)

replace (
{replaced}
)
"""
PARTS = re.compile(r"^\t(k8s\.io/\S+) => \./staging/", re.MULTILINE)
ETCD = re.compile(r"^\tgo\.etcd\.io/etcd/server/v3 (\S+)", re.MULTILINE)
GO_VERSION = re.compile(r"^go(\d+)\.(\d+)")
NEXT = "next: install Go 1.24 or newer (Debian 13: apt-get install golang-go; Debian 12 has 1.19, which is too old)"
BUILD_S = 3600


class NoGoError(Exception):
    """There is no Go that could build this; says what to do."""


def programs(cache: Path) -> Path:
    """The directory with etcd, kubectl and the parts of Kubernetes; what is missing is built."""
    place = cache / "vtax-kubernetes" / VERSION
    (place / "bin").mkdir(parents=True, exist_ok=True)
    with build.locked(place / "lock"):
        missing = [name for name in (PAUSE, "etcd", *KUBERNETES) if not (place / "bin" / name).exists()]
        if missing:
            _check_go()
            environment = _environment(place.parent)
            _write_modules(place, environment)
        for name in missing:
            print(f"building {name} of Kubernetes {VERSION} in {place}")  # noqa: T201
            _build(place, name, environment)
    return place / "bin"


def _check_go() -> None:
    program = shutil.which("go")
    if program is None:
        raise NoGoError(f"Kubernetes for tests is built with Go, and there is no program `go`\n  {NEXT}")
    said = subprocess.run((program, "env", "GOVERSION"), capture_output=True, text=True, timeout=60, check=True).stdout
    found = GO_VERSION.match(said)
    if found is None or (int(found[1]), int(found[2])) < GO:
        raise NoGoError(f"Kubernetes {VERSION} needs Go {GO[0]}.{GO[1]}, and {program} is {said.strip()}\n  {NEXT}")


def _environment(place: Path) -> dict[str, str]:
    return {
        **os.environ,
        "GOCACHE": str(place / "go-build"),
        "GOMODCACHE": str(place / "modules"),
        "GOFLAGS": "-mod=mod -modcacherw -buildvcs=false",
        "GOWORK": "off",
        "CGO_ENABLED": "0",
    }


def _write_modules(place: Path, environment: dict[str, str]) -> None:
    """A module that asks for Kubernetes. Its parts are modules in directories of its own repository; the proxy has them
    under versions of their own."""
    pause, module = place / "pause", place / "module"
    for directory in (pause, module):
        directory.mkdir(exist_ok=True)
    (pause / "go.mod").write_text("module pause\n\ngo 1.24.0\n")
    (pause / "main.go").write_text(PAUSE_SOURCE)
    asked = _go(module, environment, "mod", "download", "-json", f"k8s.io/kubernetes@{VERSION}")
    declared = Path(json.loads(asked)["GoMod"]).read_text()
    etcd = ETCD.search(declared)
    parts = PARTS.findall(declared)
    assert etcd and parts, declared
    version = VERSION.replace("v1.", "v0.")
    replaced = "\n".join(f"\t{part} => {part} {version}" for part in parts)
    text = MODULE.format(go=".".join(map(str, GO)), etcd=etcd[1], version=VERSION, replaced=replaced)
    (module / "go.mod").write_text(text)
    wanted = "".join(f'\t_ "{_package(name)}"\n' for name in ("etcd", *KUBERNETES))
    (module / "programs.go").write_text(f"//go:build programs\n\npackage lab\n\nimport (\n{wanted})\n")
    _go(module, environment, "mod", "tidy")


def _package(name: str) -> str:
    return "go.etcd.io/etcd/server/v3" if name == "etcd" else f"k8s.io/kubernetes/cmd/{name}"


def _build(place: Path, name: str, environment: dict[str, str]) -> None:
    """Under another name first: a build that is ended leaves no half of a program."""
    stamps = " ".join(
        f"-X {package}.{field}={value}"
        for package in ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")
        for field, value in (("gitVersion", VERSION), ("gitMajor", "1"), ("gitMinor", VERSION.split(".")[1]))
    )
    directory, package = (place / "pause", ".") if name == PAUSE else (place / "module", _package(name))
    fresh = place / "bin" / f".{name}"
    _go(directory, environment, "build", "-ldflags", f"-s -w {stamps}", "-o", str(fresh), package)
    fresh.rename(place / "bin" / name)


def _go(place: Path, environment: dict[str, str], *words: str) -> str:
    """With low priority, since it takes all CPUs for minutes."""
    made = subprocess.run(
        ("nice", "go", *words), cwd=place, env=environment, capture_output=True, text=True, timeout=BUILD_S
    )
    assert made.returncode == 0, f"go {' '.join(words)}: {made.stderr[-3000:]}"
    return made.stdout


def main() -> None:
    """Build what is missing."""
    try:
        programs(Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"))
    except NoGoError as error:
        print(f"error: {error}", file=sys.stderr)  # noqa: T201
        sys.exit(3)


if __name__ == "__main__":
    main()
