"""vtax-run: what it counts, what it passes on, whom it becomes, and what it refuses; with the real kernel, as root."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.integration
FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-static")
PROBE = r"""
#include <stdio.h>
#include <unistd.h>
extern char **environ;
int main(int argc, char **argv) {
  gid_t groups[64];
  char place[4096];
  int count = getgroups(64, groups);
  printf("user %d %d\n", getuid(), geteuid());
  printf("group %d %d\n", getgid(), getegid());
  printf("groups");
  for (int i = 0; i < count; i++) printf(" %d", groups[i]);
  printf("\ndirectory %s\n", getcwd(place, sizeof place));
  for (int i = 0; i < argc; i++) printf("argument %s\n", argv[i]);
  for (char **one = environ; *one; one++) printf("variable %s\n", *one);
  return 0;
}
"""
PASSWD = """\
root:x:0:0:root:/root:/bin/sh
# a comment, and a line that is none
broken
postgres:x:70:70:Database:/var/lib/postgres:/sbin/nologin
homeless:x:71:70:::
"""
GROUP = "root:x:0:root\npostgres:x:70:\nssl:x:101:someone,postgres\nmail:x:8:postgress\nwheel:x:10:postgres\n"
COUNTED = """
import resource, sys, time
block = bytearray(64 << 20)
end = time.process_time() + 0.3
while time.process_time() < end:
    pass
for _ in range(20):
    time.sleep(0.005)
used = resource.getrusage(resource.RUSAGE_SELF)
print(used.ru_utime, used.ru_stime, used.ru_maxrss << 10, used.ru_minflt, used.ru_nvcsw)
"""


def compiled(source: Path, to: Path) -> Path:
    subprocess.run(["gcc", *FLAGS, str(source), "-o", str(to)], check=True)
    return to


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs, where every user may run them."""
    made = tmp_path_factory.mktemp("run")
    for parent in (made, *made.parents[:2]):
        parent.chmod(0o755)
    (made / "probe.c").write_text(PROBE)
    compiled(made / "probe.c", made / "probe")
    compiled(Path(str(files("vtax.image") / "guest" / "vtax-run.c")), made / "vtax-run")
    return made


@pytest.fixture
def image(place: Path, tmp_path: Path) -> Path:
    """A directory as nodes have it: an image with one static program, and no shell."""
    made = tmp_path / "image"
    for part in ("root/etc", "root/opt/tools", "root/usr/bin"):
        (made / part).mkdir(parents=True)
    (made / "root/etc/passwd").write_text(PASSWD)
    (made / "root/etc/group").write_text(GROUP)
    for program in ("opt/tools/probe", "usr/bin/other"):
        (made / "root" / program).write_bytes((place / "probe").read_bytes())
        (made / "root" / program).chmod(0o755)
    (made / "root/usr/bin/probe").write_text("no program")
    (made / "config").write_bytes(b"")
    (made / "entry").write_bytes(b"")
    for directory, _, _ in os.walk(made):
        Path(directory).chmod(0o755)
    return made


def run(place: Path, *words: str, **options: object) -> subprocess.CompletedProcess[str]:
    given: dict[str, Any] = {"capture_output": True, "text": True, "timeout": 30, **options}
    return subprocess.run([str(place / "vtax-run"), *words], **given)


def told(text: str, what: str) -> list[str]:
    return [line.removeprefix(what).strip() for line in text.splitlines() if line.startswith(f"{what}")]


def configured(image: Path, *words: str) -> None:
    (image / "config").write_bytes(b"".join(word.encode() + b"\0" for word in words))


def test_it_counts_as_the_kernel_does(place: Path, tmp_path: Path) -> None:
    report = tmp_path / "usage"
    began = time.monotonic()
    done = run(place, "--report", str(report), "--", sys.executable, "-c", COUNTED)
    outside_s = time.monotonic() - began
    user_s, system_s, rss, faults, switches = map(float, done.stdout.split())
    found = json.loads(report.read_text())
    assert found["status"] == done.returncode == 0
    # Python says what it used before it ends; ending takes some more.
    assert user_s <= found["user_s"] <= user_s + 0.1
    assert system_s - 0.001 <= found["system_s"] <= system_s + 0.1
    assert 0.4 < found["wall_s"] <= outside_s
    assert found["wall_s"] > 0.8 * outside_s - 0.05
    assert rss <= found["max_rss_bytes"] <= rss + (8 << 20)
    assert faults <= found["minor_faults"] <= faults + 2000
    assert max(switches, 20) <= found["voluntary_switches"] <= switches + 20
    assert found["major_faults"] >= 0
    assert found["involuntary_switches"] >= 0


def test_wall_time_has_nanoseconds(place: Path, tmp_path: Path) -> None:
    digits = []
    for number in range(4):
        run(place, "--report", str(tmp_path / str(number)), "--", "/bin/true")
        digits.append((tmp_path / str(number)).read_text().partition(",")[0].partition(".")[2])
    assert {len(one) for one in digits} == {9}
    assert any(not one.endswith("000") for one in digits)


@pytest.mark.parametrize("report", [True, False])
@pytest.mark.parametrize(
    ("script", "status"), [("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", -15), ("kill -9 $$", -9)]
)
def test_it_ends_as_the_command_does(place: Path, tmp_path: Path, report: bool, script: str, status: int) -> None:
    words = ("--report", str(tmp_path / "usage")) if report else ()
    assert run(place, *words, "--", "sh", "-c", script).returncode == status
    if report:
        assert json.loads((tmp_path / "usage").read_text())["status"] == status


@pytest.mark.parametrize("name", ["TERM", "INT", "HUP", "QUIT", "USR1", "USR2"])
def test_signals_are_passed_on(place: Path, tmp_path: Path, name: str) -> None:
    script = f"trap 'exit 7' {name}; touch {tmp_path}/ready; while :; do sleep 0.01; done"
    words = (str(place / "vtax-run"), "--report", str(tmp_path / "usage"), "--", "sh", "-c", script)

    def usual() -> None:
        """A shell ignores some signals in the background, and a shell below it cannot trap those."""
        signal.signal(getattr(signal, f"SIG{name}"), signal.SIG_DFL)

    with subprocess.Popen(words, preexec_fn=usual) as running:
        while not (tmp_path / "ready").exists():
            assert running.poll() is None
            time.sleep(0.01)
        running.send_signal(getattr(signal, f"SIG{name}"))
        assert running.wait(10) == 7
    assert json.loads((tmp_path / "usage").read_text())["status"] == 7


def test_the_command_ends_with_it(place: Path, tmp_path: Path) -> None:
    script = f"echo $$ >{tmp_path}/new; mv {tmp_path}/new {tmp_path}/pid; exec sleep 60"
    words = (str(place / "vtax-run"), "--report", str(tmp_path / "usage"), "--", "sh", "-c", script)
    with subprocess.Popen(words) as running:
        while not (tmp_path / "pid").exists():
            time.sleep(0.01)
        running.kill()
    child = Path("/proc") / (tmp_path / "pid").read_text().strip()
    deadline = time.monotonic() + 5
    while child.exists() and "\nState:\tZ" not in (child / "status").read_text() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not child.exists() or "\nState:\tZ" in (child / "status").read_text()


def test_the_signals_of_the_command_are_as_they_were(place: Path, tmp_path: Path) -> None:
    asked = ("grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status")
    direct = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert run(place, "--report", str(tmp_path / "usage"), "--", *asked).stdout == direct


def test_a_command_that_closes_everything(place: Path, tmp_path: Path) -> None:
    script = "import os; os.closerange(0, 1000)"
    assert run(place, "--report", str(tmp_path / "usage"), "--", sys.executable, "-c", script).returncode == 0
    assert json.loads((tmp_path / "usage").read_text())["status"] == 0


def test_a_command_that_forks_away_is_counted_until_it_returns(place: Path, tmp_path: Path) -> None:
    began = time.monotonic()
    done = run(place, "--report", str(tmp_path / "usage"), "--", "sh", "-c", "sleep 2 >&- 2>&- & exit 0")
    assert done.returncode == 0
    assert json.loads((tmp_path / "usage").read_text())["wall_s"] < 1 > time.monotonic() - began


@pytest.mark.parametrize("report", [True, False])
def test_long_arguments(place: Path, tmp_path: Path, report: bool) -> None:
    words = [f"{number:099d}" for number in range(1000)]
    given = ("--report", str(tmp_path / "usage")) if report else ()
    assert told(run(place, *given, "--", str(place / "probe"), *words).stdout, "argument")[1:] == words


@pytest.mark.parametrize(
    ("command", "code", "said"),
    [
        pytest.param(["no-such-program"], 127, "no-such-program: not found", id="not in PATH"),
        pytest.param(["/no/such/program"], 127, "/no/such/program: not found", id="no path"),
        pytest.param([""], 127, ": not found", id="empty"),
        pytest.param(["/etc/passwd"], 126, "/etc/passwd: Permission denied", id="not executable"),
        pytest.param(["/etc"], 126, "/etc: Permission denied", id="a directory"),
        pytest.param(["{}/text"], 126, "text: Exec format error", id="no program"),
        pytest.param(["{}/script"], 127, "script: its loader or interpreter does not exist", id="no interpreter"),
    ],
)
@pytest.mark.parametrize("report", [True, False])
def test_what_cannot_start(
    place: Path, tmp_path: Path, report: bool, command: Sequence[str], code: int, said: str
) -> None:
    for name, text in (("text", "hello\n"), ("script", "#!/no/interpreter\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    words = ("--report", str(tmp_path / "usage")) if report else ()
    done = run(place, *words, "--", *(word.format(tmp_path) for word in command))
    assert done.returncode == code
    assert said in done.stderr
    if report:
        assert json.loads((tmp_path / "usage").read_text())["status"] == code


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "usage: vtax-run"),
        (["--report"], "a value is missing after --report"),
        (["--colour", "red", "--", "true"], "there is no option --colour"),
        (["--set", "NAME", "--", "true"], "not NAME=VALUE: NAME"),
        (["--set", "=x", "--", "true"], "not NAME=VALUE: =x"),
        (["--user", "nobody-here", "--", "true"], "/etc/passwd does not name the user nobody-here"),
        (["--user", "0:no-group", "--", "true"], "/etc/group does not name the group no-group"),
        (["--user", "4294967295", "--", "true"], "/etc/passwd does not name the user 4294967295"),
        (["--image", "/no/image", "--", "true"], "cannot read /no/image/config: No such file"),
        (["--directory", "/no/place", "--", "true"], "cannot go to /no/place: No such file"),
        (["--report", "/no/place/usage", "--", "true"], "cannot make /no/place/usage: No such file"),
    ],
)
def test_what_it_refuses(place: Path, words: Sequence[str], said: str) -> None:
    done = run(place, *words)
    assert done.returncode == 125
    assert said in done.stderr


@pytest.mark.parametrize("link", [True, False])
def test_a_report_is_never_written_over(place: Path, tmp_path: Path, link: bool) -> None:
    report = tmp_path / "usage"
    if link:
        report.symlink_to(tmp_path / "elsewhere")
    else:
        report.write_text("old")
    done = run(place, "--report", str(report), "--", "touch", str(tmp_path / "ran"))
    assert done.returncode == 125
    assert "File exists" in done.stderr
    assert not (tmp_path / "ran").exists()
    assert not (tmp_path / "elsewhere").exists()


def test_variables_and_directory(place: Path, tmp_path: Path) -> None:
    words = ("--set", "A=1", "--set", "B=x=y z", "--set", "A=2", "--directory", str(tmp_path))
    done = run(place, *words, "--", str(place / "probe"), env={"A": "0", "KEPT": "yes"})
    assert told(done.stdout, "variable") == ["A=2", "KEPT=yes", "B=x=y z"]
    assert told(done.stdout, "directory") == [str(tmp_path)]


@pytest.mark.parametrize("report", [True, False])
@pytest.mark.parametrize(
    ("user", "ids", "groups", "home"),
    [
        pytest.param("postgres", "70 70", "10 101", "/var/lib/postgres", id="by name"),
        pytest.param("70", "70 70", "10 101", "/var/lib/postgres", id="by number"),
        pytest.param("postgres:ssl", "70 101", "", "/var/lib/postgres", id="with a group"),
        pytest.param("postgres:5", "70 5", "", "/var/lib/postgres", id="with the number of a group"),
        pytest.param("homeless", "71 70", "", "/", id="without a home"),
        pytest.param("1234", "1234 0", "", "/", id="of no name"),
        pytest.param("1234:5678", "1234 5678", "", "/", id="of no name, nor group"),
        pytest.param("", "0 0", "0", "/root", id="none"),
        pytest.param(":8", "0 8", "", "/root", id="a group alone"),
    ],
)
def test_users_are_those_of_the_image(
    place: Path, image: Path, tmp_path: Path, report: bool, user: str, ids: str, groups: str, home: str
) -> None:
    words = ("--report", str(tmp_path / "usage")) if report else ()
    done = run(place, *words, "--image", str(image), "--user", user, "--", "other")
    uid, gid = ids.split()
    assert told(done.stdout, "user") == [f"{uid} {uid}"], done.stderr
    assert told(done.stdout, "group ") == [f"{gid} {gid}"]
    assert told(done.stdout, "groups") == [groups]
    assert f"HOME={home}" in told(done.stdout, "variable")


def test_another_user_of_the_node(place: Path, tmp_path: Path) -> None:
    done = run(
        place,
        "--report",
        str(tmp_path / "usage"),
        "--user",
        "nobody",
        "--",
        "sh",
        "-c",
        "id -un; echo $HOME $A",
        env={**os.environ, "HOME": "/root", "A": "kept"},
    )
    assert done.stdout.split() == ["nobody", "/nonexistent", "kept"]
    assert json.loads((tmp_path / "usage").read_text())["status"] == 0


def test_signals_reach_a_command_of_another_user(place: Path, tmp_path: Path) -> None:
    words = ("--report", str(tmp_path / "usage"), "--user", "nobody", "--", "sleep", "60")
    bare = ("setpriv", "--bounding-set", "-kill", "--inh-caps", "-all")
    with subprocess.Popen([*bare, str(place / "vtax-run"), *words]) as running:
        while b"sleep" not in children(running.pid):
            time.sleep(0.01)
        running.terminate()
        assert running.wait(5) == -signal.SIGTERM


def children(pid: int) -> bytes:
    listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return b"".join(Path(f"/proc/{child}/cmdline").read_bytes() for child in listed)


def test_the_environment_of_an_image_is_its_own(place: Path, image: Path) -> None:
    configured(
        image, "--set", "PATH=/usr/bin:/opt/tools", "--set", "LANG=C", "--set", "A=image", "--directory", "/new/place"
    )
    done = run(place, "--image", str(image), "--set", "A=study", "--", "probe", env={"LEAK": "1", "PATH": "/bin"})
    assert sorted(told(done.stdout, "variable")) == ["A=study", "HOME=/root", "LANG=C", "PATH=/usr/bin:/opt/tools"]
    assert told(done.stdout, "directory") == ["/new/place"]  # /usr/bin/probe is no program: the search goes on
    bare = run(place, "--image", str(image), "--directory", "/", "--set", "PATH=/bin", "--", "other")
    assert (bare.returncode, bare.stderr) == (127, "vtax-run: other: not found\n")
    configured(image)
    default = told(run(place, "--image", str(image), "--", "other").stdout, "variable")
    assert default == ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root"]


def test_the_entry_of_an_image(place: Path, image: Path) -> None:
    configured(image, "--user", "postgres", "--set", "WHO=entry")
    assert "no command is given, and the image names none" in run(place, "--image", str(image)).stderr
    (image / "entry").write_bytes(b"/opt/tools/probe\0two words\0\0last\0")
    done = run(place, "--image", str(image))
    assert told(done.stdout, "argument") == ["/opt/tools/probe", "two words", "", "last"]
    assert told(done.stdout, "user") == ["70 70"]
    mine = run(place, "--image", str(image), "--user", "homeless", "--", "other", "x")
    assert told(mine.stdout, "argument") == ["other", "x"]
    assert told(mine.stdout, "user") == ["71 71"]


@pytest.mark.parametrize("config", [b"--report\0/x\0", b"--image\0/x\0", b"true\0", b"--user\0"])
def test_an_image_cannot_ask_for_everything(place: Path, image: Path, config: bytes) -> None:
    (image / "config").write_bytes(config)
    done = run(place, "--image", str(image), "--", "other")
    assert done.returncode == 125
    assert done.stdout == ""


def test_an_image_has_no_way_to_the_report(place: Path, image: Path, tmp_path: Path) -> None:
    """It is opened before the image is entered: a link of the image's leads nowhere."""
    report = tmp_path / "usage"
    done = run(place, "--report", str(report), "--image", str(image), "--user", "postgres", "--", "other")
    assert done.returncode == 0
    assert json.loads(report.read_text())["status"] == 0
    assert report.stat().st_uid == 0


BARE = ("setpriv", "--bounding-set", "-all", "--inh-caps", "-all", "--no-new-privs")


@pytest.mark.parametrize("report", [True, False])
def test_it_works_without_capabilities(place: Path, tmp_path: Path, report: bool) -> None:
    words = ("--report", str(tmp_path / "usage")) if report else ()
    command = [*BARE, str(place / "vtax-run"), *words, "--set", "A=1", "--", "grep", "^CapEff", "/proc/self/status"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert int(done.stdout.split()[1], 16) == 0


def test_becoming_another_user_needs_them(place: Path) -> None:
    command = [*BARE, str(place / "vtax-run"), "--user", "nobody", "--", "true"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        125,
        "vtax-run: cannot set the groups of nobody: Operation not permitted\n",
    )


@pytest.mark.parametrize("user", ["root", "nobody"])
def test_what_a_container_allows_stays(place: Path, user: str) -> None:
    """Without anything lent, the bounding set is left alone: root in a container may still change its user."""
    asked = ("grep", "^Cap", "/proc/self/status")
    given = dict(line.split() for line in subprocess.run(asked, capture_output=True, text=True).stdout.splitlines())
    left = dict(line.split() for line in run(place, "--user", user, "--", *asked).stdout.splitlines())
    assert left["CapBnd:"] == given["CapBnd:"]
    assert left["CapEff:"] == (given["CapEff:"] if user == "root" else "0" * 16)
    assert int(left["CapInh:"], 16) == int(left["CapAmb:"], 16) == 0
