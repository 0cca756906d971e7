"""The machine that all clones are made from: its disk next to the cached image, itself in VirtualBox's registry."""

from __future__ import annotations

import fcntl
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from vtax.model.cluster import Image
from vtax.providers.guest import disk, firmware
from vtax.providers.virtualbox import command as lines
from vtax.providers.virtualbox import manage
from vtax.providers.virtualbox.command import VirtualBoxOptions

FOLDER = "virtualbox"


@contextmanager
def ready(image: Image, size_bytes: int, options: VirtualBoxOptions) -> Iterator[str]:
    """The name of the machine for disks of this size, made when it is not there. Locked meanwhile, because
    VirtualBox lets only one caller at a time work on a machine."""
    name = lines.base_name(image, size_bytes, options)
    with (disk.cache_of(image) / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        medium = disk.ensure(image, f"{name}.vdi", lambda fresh: _convert(fresh, image, size_bytes))
        folder = disk.cache_of(image) / FOLDER
        if not manage.about(name):
            shutil.rmtree(folder / name, ignore_errors=True)  # of a registry that is gone, or half made
            _register(name, medium, folder, options)
        yield name


def _convert(fresh: Path, image: Image, size_bytes: int) -> None:
    raw = fresh.with_suffix(".raw")
    try:
        firmware.write(raw, image, size_bytes)
        manage.run(lines.convert(raw, fresh))
    finally:
        raw.unlink(missing_ok=True)


def _register(name: str, medium: Path, folder: Path, options: VirtualBoxOptions) -> None:
    try:
        for line in lines.base(name, medium, folder, options):
            manage.run(line)
    except BaseException:
        # Without its disk, which is complete.
        manage.run((lines.PROGRAM, "unregistervm", name), check=False)
        shutil.rmtree(folder / name, ignore_errors=True)
        raise


def remove(image: Image) -> None:
    """Remove the machines and disks of an image."""
    place = disk.cache_of(image)
    names = sorted({path.name.removesuffix(".vdi") for path in place.glob(f"{lines.BASE}-*.vdi")})
    for name in names if manage.program() else ():
        manage.run(lines.unregister(name), check=False)  # not registered is fine
    shutil.rmtree(place / FOLDER, ignore_errors=True)
    for path in place.glob(f"{lines.BASE}-*"):
        path.unlink(missing_ok=True)
