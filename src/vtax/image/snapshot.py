"""A root file system of a day: Debian's archive as it was then, and a build that does not depend on when and where.

With `SOURCE_DATE_EPOCH` mmdebstrap writes a reproducible archive (sorted, numeric owners, no later times), and
packages record that moment instead of the present one. All of this module is pure.
"""

from __future__ import annotations

from collections.abc import Mapping

from vtax.model.study import SNAPSHOT_PLACE, moment

ARCHIVE = f"http://snapshot.debian.org/archive/debian/{SNAPSHOT_PLACE}/"  # what `mirror = "auto"` is with a snapshot
KEPT = ("APT_CONFIG", "HOME", "PATH", "TMPDIR")  # of the environment: where programs, mirrors and files are

# The Release file of a day in the past may have expired (unstable, updates), which apt takes for an attack. Here that
# is the intention, so the check is off, for this one source. The signature is checked as always.
_EXPIRED = r"""
list="$1/etc/apt/sources.list"
sed -i -e 's/^deb \[/deb [check-valid-until=no /' -e t -e 's/^deb /deb [check-valid-until=no] /' "$list"
grep -q '^deb \[check-valid-until=no' "$list"
"""
# A mirror that goes on changing has a newer Release file as soon as anything changed in the suite after the snapshot.
_NOT_NEWER = r"""
for release in "$1"/var/lib/apt/lists/*Release; do
  made=$(sed -n 's/^Date: //p' "$release")
  [ -n "$made" ] && [ "$(date -d "$made" +%s)" -le "$SOURCE_DATE_EPOCH" ] || {
    echo "E: the mirror is of ${made:-an unknown date}, which is after the snapshot" >&2
    exit 1
  }
done
"""
# Where apt of this machine does not know the suite's keys, mmdebstrap names their file, which is the usual one anyway.
_SAME_SOURCE = r"""
sed -i 's/ signed-by="[^"]*"//' "$1/etc/apt/sources.list"
"""
OPTIONS = (  # of mmdebstrap, besides those of every build
    "--skip=cleanup/apt",  # build.sh does it; apt would leave a directory, with an owner that depends on the user
    f"--setup-hook=set -eu{_EXPIRED}",
    f"--extract-hook=set -eu{_NOT_NEWER}",
    f"--customize-hook=set -eu{_SAME_SOURCE}",
)


def address(mirror: str, stamp: str) -> str:
    """The address of a mirror, with the snapshot's time stamp where it belongs."""
    return mirror.replace(SNAPSHOT_PLACE, stamp)


def stamp(day_or_time: str) -> str:
    """The time stamp by which archives of snapshots name a moment; "" for none."""
    return moment(day_or_time).strftime("%Y%m%dT%H%M%SZ") if day_or_time else ""


def environment(stamp: str, own: Mapping[str, str]) -> dict[str, str]:
    """The environment of a build: this process's `own`; for a snapshot only what a build needs of it, and the moment
    that it takes for today."""
    fixed = {"LC_ALL": "C.UTF-8", "TZ": "UTC"}
    if not stamp:
        return {**own, **fixed}
    kept = {name: value for name, value in own.items() if name in KEPT or name.lower().endswith("_proxy")}
    return {**kept, **fixed, "SOURCE_DATE_EPOCH": str(int(moment(stamp).timestamp()))}
