"""The recipe of the root file system: its mirror, its key, its command."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from pydantic import ValidationError

from vtax.image import recipe as module
from vtax.image import snapshot
from vtax.image.recipe import GUEST, MODULES, Recipe, command, guest_files, machine_mirror, programs, recipe
from vtax.model.study import ImageSpec

DEBIAN = 'PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nNAME="Debian GNU/Linux"\nVERSION_CODENAME=trixie\nID=debian\n'
UBUNTU = 'NAME="Ubuntu"\nVERSION_CODENAME=noble\nID=ubuntu\nID_LIKE=debian\n'
PARTS = "Types: deb\nURIs: {uri}\nSuites: {suites}\nComponents: main\n"
MIRROR = "http://mirror.example/debian"
OTHER = "http://other.example/debian"


def deb822(uri: str = MIRROR, suites: str = "trixie trixie-updates") -> str:
    return PARTS.format(uri=uri, suites=suites)


@pytest.mark.parametrize(
    ("sources", "mirror"),
    [
        pytest.param([deb822()], MIRROR, id="deb822"),
        pytest.param([deb822(f"{MIRROR} {OTHER}")], MIRROR, id="deb822, two mirrors"),
        pytest.param([deb822(OTHER, "trixie-security") + "\n" + deb822()], MIRROR, id="deb822, security first"),
        pytest.param([deb822(OTHER, "bookworm") + "\n\n" + deb822()], MIRROR, id="deb822, another suite first"),
        pytest.param(["# " + deb822(OTHER).replace("\n", "\n# ") + "\n\n" + deb822()], MIRROR, id="deb822, comments"),
        pytest.param(["Enabled: no\n" + deb822(OTHER) + "\n" + deb822()], MIRROR, id="deb822, disabled"),
        pytest.param([deb822(OTHER).replace("deb\n", "deb-src\n"), deb822()], MIRROR, id="deb822, sources only"),
        pytest.param([deb822().replace("deb\n", "deb deb-src\n")], MIRROR, id="deb822, both"),
        pytest.param([deb822().replace("main", "contrib")], "", id="deb822, without main"),
        pytest.param(["Types: deb\nSuites: trixie\nComponents: main\n"], "", id="deb822, without URIs"),
        pytest.param([f"deb {MIRROR} trixie main"], MIRROR, id="one line"),
        pytest.param(
            [f"deb [arch=amd64 signed-by=/a.gpg] {MIRROR} trixie main contrib"], MIRROR, id="one line, options"
        ),
        pytest.param([f"# deb {OTHER} trixie main\ndeb {MIRROR} trixie main # ours"], MIRROR, id="one line, comments"),
        pytest.param([f"deb-src {OTHER} trixie main\ndeb {MIRROR} trixie main"], MIRROR, id="one line, sources"),
        pytest.param([f"deb {OTHER} trixie-security main\ndeb {MIRROR} trixie main"], MIRROR, id="one line, security"),
        pytest.param([f"deb {OTHER} bookworm main\ndeb {MIRROR} trixie main"], MIRROR, id="one line, several suites"),
        pytest.param([f"deb {MIRROR} trixie contrib"], "", id="one line, without main"),
        pytest.param(["deb cdrom:[Debian GNU/Linux 13 _Trixie_]/ trixie main"], "", id="one line, a disc"),
        pytest.param(["", "# nothing\n", deb822()], MIRROR, id="the third file"),
        pytest.param([], "", id="no sources"),
    ],
)
def test_the_mirror_of_a_debian_machine(sources: list[str], mirror: str) -> None:
    assert machine_mirror(DEBIAN, sources) == mirror


@pytest.mark.parametrize("os_release", [UBUNTU, "", "ID=debian\n", "VERSION_CODENAME=trixie\n"])
def test_another_system_has_no_mirror_of_debian(os_release: str) -> None:
    assert machine_mirror(os_release, [deb822(), deb822(suites="noble")]) == ""


def made(guest: Mapping[str, str] | None = None) -> Recipe:
    return Recipe(
        suite="trixie",
        mirror=MIRROR,
        components=("main", "non-free"),
        packages=("hpcc", "sysbench"),
        build_packages=("gcc", "libc6-dev"),
        guest=guest or {"build.sh": "aa"},
    )


def test_the_key_is_of_the_content() -> None:
    assert len(made().key) == 16
    assert made().key == made().key


@pytest.mark.parametrize(
    "change",
    [
        {"suite": "sid"},
        {"mirror": OTHER},
        {"components": ("main",)},
        {"packages": ("hpcc", "sysbench", "vim")},
        {"build_packages": ("gcc",)},
        {"guest": {"build.sh": "bb"}},
        {"guest": {"build.sh": "aa", "more.sh": "aa"}},
        {"snapshot": "20261101T000000Z"},
    ],
    ids=lambda change: next(iter(change)),
)
def test_the_key_changes_with_everything(change: Mapping[str, object]) -> None:
    assert made().model_copy(update=change).key != made().key


def test_a_study_s_recipe() -> None:
    plain = recipe(ImageSpec(), MIRROR)
    assert (plain.suite, plain.mirror, plain.components) == ("trixie", MIRROR, ("main", "non-free"))
    assert {"hpcc", "sysbench", "openssh-server"} <= set(plain.packages)
    assert set(plain.guest) == set(GUEST)
    assert recipe(ImageSpec(mirror=OTHER), MIRROR).mirror == OTHER
    more = recipe(ImageSpec(extra_packages=("vim", "hpcc")), MIRROR)
    assert set(more.packages) - set(plain.packages) == {"vim"}
    assert more.key != plain.key


def test_the_kernel_of_virtual_machines_is_a_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "x86_64")
    small, generic = (set(recipe(ImageSpec(kernel=kernel), MIRROR).packages) for kernel in ("cloud", "generic"))
    assert small - generic == {"linux-image-cloud-amd64"}
    assert generic - small == {"linux-image-amd64"}
    assert recipe(ImageSpec(kernel="generic"), MIRROR).key != recipe(ImageSpec(), MIRROR).key


def test_our_own_files_decide_the_key(monkeypatch: pytest.MonkeyPatch) -> None:
    before = recipe(ImageSpec(), MIRROR).key
    monkeypatch.setattr(module, "guest_files", lambda: {**guest_files(), "build.sh": b"true\n"})
    assert recipe(ImageSpec(), MIRROR).key != before


def test_the_command() -> None:
    assert command(made(), "/tmp/guest", "/tmp/kernel", "unshare") == (
        "mmdebstrap",
        "--mode=unshare",
        "--variant=minbase",
        "--format=tar",
        "--components=main,non-free",
        "--dpkgopt=force-unsafe-io",
        "--aptopt=APT::Install-Recommends false",
        "--dpkgopt=path-exclude=/usr/share/man/*",
        "--dpkgopt=path-exclude=/usr/share/doc/*",
        "--dpkgopt=path-include=/usr/share/doc/*/copyright",
        "--dpkgopt=path-exclude=/usr/share/locale/*",
        "--dpkgopt=path-exclude=/etc/kernel/postinst.d/initramfs-tools",
        "--include=hpcc,sysbench,gcc,libc6-dev",
        '--customize-hook=mkdir -p "$1/usr/local/lib/vtax"',
        "--customize-hook=copy-in /tmp/guest /usr/local/lib/vtax",
        f"--customize-hook=VTAX_BUILD_PACKAGES='gcc libc6-dev' VTAX_PROGRAMS='{' '.join(programs())}' "
        f"VTAX_MODULES='{' '.join(MODULES)}' "
        'chroot "$1" sh /usr/local/lib/vtax/guest/build.sh',
        "--customize-hook=copy-out /boot /usr/lib/modules /tmp/kernel",
        '--customize-hook=rm -rf "$1/boot" "$1/usr/lib/modules"',
        "--",
        "trixie",
        "-",
        MIRROR,
    )


def test_a_snapshot_s_command() -> None:
    """The rest is as without one: the hooks alone are new."""
    plain = command(made(), "/tmp/guest", "/tmp/kernel", "root")
    dated = command(made().model_copy(update={"snapshot": "20261101T000000Z"}), "/tmp/guest", "/tmp/kernel", "root")
    place = plain.index('--customize-hook=mkdir -p "$1/usr/local/lib/vtax"')
    assert dated == (*plain[:place], *snapshot.OPTIONS, *plain[place:])
    assert [option.partition("=")[0] for option in snapshot.OPTIONS] == [
        *("--skip", "--setup-hook", "--extract-hook", "--customize-hook"),
    ]
    assert not [word for word in dated if "trusted" in word or "allow-insecure" in word or "Check-Valid-Until" in word]


@pytest.mark.parametrize(
    ("given", "mirror", "seconds"),
    [
        pytest.param("2026-11-01", "auto", 1793491200, id="a day"),  # date -u -d 2026-11-01 +%s
        pytest.param("20261101T120000Z", "auto", 1793534400, id="a time"),
        pytest.param("2026-11-01", "https://mirror.example/{snapshot}/debian", 1793491200, id="one's own"),
        pytest.param("2026-11-01", OTHER, 1793491200, id="a mirror that does not change"),
    ],
)
def test_a_snapshot_is_of_a_moment_and_has_its_address(given: str, mirror: str, seconds: int) -> None:
    found = recipe(ImageSpec(snapshot=given, mirror=mirror), MIRROR)
    stamp = "20261101T120000Z" if "T" in given else "20261101T000000Z"
    assert found.snapshot == stamp
    addresses = {
        "auto": f"http://snapshot.debian.org/archive/debian/{stamp}/",
        OTHER: OTHER,
    }
    assert found.mirror == addresses.get(mirror, f"https://mirror.example/{stamp}/debian")
    assert snapshot.environment(found.snapshot, {})["SOURCE_DATE_EPOCH"] == str(seconds)


def test_without_a_snapshot_a_recipe_is_what_it_was() -> None:
    """The key of a root file system in the cache does not change because recipes may have more fields."""
    plain = recipe(ImageSpec(), MIRROR)
    assert plain.recorded.keys() == {"suite", "mirror", "components", "packages", "build_packages", "guest"}
    assert snapshot.environment("", {"A": "b", "LC_ALL": "de_DE"}) == {"A": "b", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
    day, time = (recipe(ImageSpec(snapshot=given), MIRROR) for given in ("2026-11-01", "20261101T000000Z"))
    assert day.key == time.key != plain.key


def test_a_snapshot_s_build_does_not_see_the_environment_of_the_user() -> None:
    own = {"PATH": "/bin", "HOME": "/root", "http_proxy": "http://proxy.example", "LANG": "de_DE", "TERM": "xterm"}
    assert snapshot.environment("20261101T000000Z", own) == {
        **{"PATH": "/bin", "HOME": "/root", "http_proxy": "http://proxy.example"},
        **{"LC_ALL": "C.UTF-8", "TZ": "UTC", "SOURCE_DATE_EPOCH": "1793491200"},
    }


def test_without_a_mirror_mmdebstrap_chooses() -> None:
    assert command(made().model_copy(update={"mirror": ""}), "/tmp/guest", "/tmp/kernel", "root")[-3:] == (
        "--",
        "trixie",
        "-",
    )


@pytest.mark.parametrize("kept", ["auto", MIRROR, "https://mirror.example/debian/", "file:///srv/debian"])
def test_a_mirror_is_an_address(kept: str) -> None:
    assert ImageSpec(mirror=kept).mirror == kept


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("mirror", "--setup-hook=id >/tmp/owned; exit 1"),
        ("mirror", "deb [trusted=yes] http://mirror.example/debian trixie main"),
        ("mirror", "http://mirror.example/debian\ndeb http://other.example/ trixie main"),
        ("mirror", "/etc/apt/sources.list"),
        ("mirror", ""),
        ("components", ("main\ndeb http://other.example/ trixie main",)),
        ("components", ("--setup-hook=id",)),
        ("suite", "--setup-hook=id"),
        ("extra_packages", ("vim,--setup-hook=id",)),
        ("extra_packages", ("./own.deb",)),
        ("kernel", "own"),
        ("snapshot", "2026-11-01'; id; '"),
        ("snapshot", "2026-11-01\n"),
        ("snapshot", "2026-02-30"),
        ("snapshot", "20261101T246000Z"),
        ("snapshot", "yesterday"),
        ("snapshot", "1999-01-01"),
    ],
)
def test_a_recipe_from_a_plan_holds_no_option_and_no_line_of_apt(field: str, value: object) -> None:
    """A resumed campaign brings its recipe in plan.json, so the record refuses it, not only the study file."""
    with pytest.raises(ValidationError, match=field):
        ImageSpec.model_validate({field: value})


def test_a_place_for_a_snapshot_needs_one() -> None:
    with pytest.raises(ValidationError, match="there is no `snapshot`"):
        ImageSpec(mirror="https://mirror.example/{snapshot}/debian")


def test_packages_are_asked_for_without_installing_anything() -> None:
    made = recipe(ImageSpec(suite="sid", mirror=MIRROR), "")
    argv = module.simulation(made, ("redis-server", "procps"), "root")
    assert argv[:2] == ("mmdebstrap", "--simulate")
    assert argv[-4:] == ("--", "sid", "/dev/null", MIRROR)
    (included,) = (word for word in argv if word.startswith("--include="))
    names = included.removeprefix("--include=").split(",")
    assert names.count("procps") == 1
    assert {"redis-server", "openssh-server"} <= set(names)
    assert "gcc" not in names, "what a build removes again may conflict"
    assert not [word for word in argv if "hook" in word]
