"""The action for pull requests: its script, with stand-ins for `vtax` and `gh`, and what action.yml says."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from builders.small import PRINTED, as_fast, new_campaign, planned, store
from fakes.cluster import FakeProvider
from vtax.analysis.gates import check_gates, parse_gates
from vtax.planning.study import parse
from vtax.tools import declared_metrics

TOP = Path(__file__).resolve().parents[2]
SCRIPT = TOP / "action" / "run"
ACTION = (TOP / "action" / "action.yml").read_text(encoding="utf-8")
STUDY = 'name = "ci"\n[image.workload]\nfrom = "docker-archive:{}"\n'
VTAX = """\
#!/bin/sh
printf '%s\\n' "$*" >>"$LOG"
case $1 in
  run)
    cat "$STUDY_IMAGE" >>"$LOG"
    mkdir -p "$4"
    exit "${RUN_EXIT:-0}" ;;
  compare)
    cat "$SAYS"
    exit "${COMPARE_EXIT:-0}" ;;
esac
"""
GH = '#!/bin/sh\nprintf "%s\\n" "$*" "$GITHUB_TOKEN" >>"$LOG"\ncat >"$POSTED"\nexit "${GH_EXIT:-0}"\n'


@dataclass
class Job:
    """A checkout with a study, two images and a runner's environment."""

    top: Path
    given: dict[str, str] = field(default_factory=dict)

    def program(self, name: str, text: str) -> None:
        path = self.top / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)

    def run(self, step: str, **more: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.top / 'bin'}:{os.environ['PATH']}"
        return subprocess.run(
            (sys.executable, str(SCRIPT), step),
            cwd=self.top,
            env={"PATH": path, "HOME": str(self.top), **self.given, **more},
            text=True,
            capture_output=True,
            check=False,
        )

    def log(self) -> list[str]:
        path = self.top / "log"
        return path.read_text().splitlines() if path.exists() else []

    def summary(self) -> str:
        return (self.top / "summary.md").read_text()


@pytest.fixture
def job(tmp_path: Path) -> Job:
    (tmp_path / "bench").mkdir()
    (tmp_path / "bench" / "ci.toml").write_text(STUDY.format("app.tar"))
    (tmp_path / "bench" / "app.tar").write_text("image of the pull request\n")
    (tmp_path / "base.tar").write_text("image of the base\n")
    (tmp_path / "says").write_text('container: work wall_time: within the margin\ngate "any": holds\n')
    (tmp_path / "event.json").write_text('{"pull_request": {"number": 7}}')
    names = {"LOG": "log", "SAYS": "says", "POSTED": "posted", "STUDY_IMAGE": "bench/app.tar"}
    names |= {"GITHUB_STEP_SUMMARY": "summary.md", "GITHUB_EVENT_PATH": "event.json"}
    given = {key: str(tmp_path / name) for key, name in names.items()}
    made = Job(tmp_path, {**given, "STUDY": "bench/ci.toml", "BASE_IMAGE": "base.tar", "OUTPUT": "out"})
    made.given["GITHUB_REPOSITORY"] = "someone/app"
    made.program("vtax", VTAX)
    made.program("gh", GH)
    return made


def test_both_images_run_the_same_study_and_are_compared(job: Job) -> None:
    done = job.run("measure", FAIL_ON="any primary slower than 5%\n\n blocker \n", ENVIRONMENT="container")
    assert done.returncode == 0, done.stderr
    assert job.log() == [
        "run bench/ci.toml --output out/base",
        "image of the base",
        "run bench/ci.toml --output out/pr",
        "image of the pull request",
        "compare out/base out/pr --environment container --fail-on any primary slower than 5% --fail-on blocker "
        "--junit out/vtax.xml",
    ]
    assert (job.top / "bench" / "app.tar").read_text() == "image of the pull request\n"
    assert sorted(path.name for path in (job.top / "bench").iterdir()) == ["app.tar", "ci.toml"]
    assert job.summary() == (
        "### vtax: this pull request (B) against its base (A)\n\nNo gate failed.\n\n"
        '```text\ncontainer: work wall_time: within the margin\ngate "any": holds\n```\n'
    )
    assert (job.top / "out" / "answer.md").read_text() == job.summary()


DRIFTS = VTAX.replace('    cat "$SAYS"\n', '    cat "$SAYS"\n    case $3 in *again) exit "${AGAIN_EXIT:-0}" ;; esac\n')


@pytest.mark.parametrize(("again", "words"), [("0", "passes the gates against itself"), ("5", "the machine changed")])
def test_the_base_is_measured_again_after_the_pull_request(job: Job, again: str, words: str) -> None:
    """A-B-A: what the base differs from itself is drift."""
    job.program("vtax", DRIFTS)
    done = job.run("measure", FAIL_ON="blocker", REPEAT_BASE="true", AGAIN_EXIT=again)
    assert done.returncode == 0, done.stderr
    assert job.log() == [
        "run bench/ci.toml --output out/base",
        "image of the base",
        "run bench/ci.toml --output out/pr",
        "image of the pull request",
        "run bench/ci.toml --output out/base-again",
        "image of the base",
        "compare out/base out/pr --fail-on blocker --junit out/vtax.xml",
        "compare out/base out/base-again --fail-on blocker",
    ]
    assert words in job.summary()
    assert "The base before (A) and after the pull request (B):" in job.summary()
    assert (job.top / "bench" / "app.tar").read_text() == "image of the pull request\n"


def test_a_comparison_of_the_base_with_itself_that_ends_badly_is_no_answer(job: Job) -> None:
    job.program("vtax", DRIFTS)
    assert job.run("measure", REPEAT_BASE="true", AGAIN_EXIT="3").returncode == 3
    assert "There is no answer: the base against itself ended with exit code 3." in job.summary()


def test_a_sealed_baseline_takes_the_place_of_the_first_campaign(job: Job) -> None:
    (job.top / "main.vtax.zip").write_text("sealed")
    assert job.run("measure", BASE_IMAGE="", BASELINE="main.vtax.zip").returncode == 0
    assert [line for line in job.log() if not line.startswith("image")] == [
        "run bench/ci.toml --output out/pr",
        "compare main.vtax.zip out/pr --junit out/vtax.xml",
    ]
    assert "No gate was given, so nothing could fail." in job.summary()


def test_a_gate_that_failed_is_the_exit_code_and_the_answer(job: Job) -> None:
    assert job.run("measure", FAIL_ON="blocker", COMPARE_EXIT="5", RUN_EXIT="4").returncode == 5
    assert "**A gate failed.** Runs of the campaign `base` failed" in job.summary()


def test_failed_runs_are_not_a_success(job: Job) -> None:
    assert job.run("measure", FAIL_ON="blocker", RUN_EXIT="4").returncode == 4
    assert "No gate failed. Runs of the campaign `base` failed" in job.summary()


@pytest.mark.parametrize(
    ("exits", "code", "commands"),
    [({"RUN_EXIT": "3"}, 3, ["run"]), ({"COMPARE_EXIT": "4"}, 4, ["run", "run", "compare"])],
)
def test_what_stops_before_an_answer_says_so(job: Job, exits: dict[str, str], code: int, commands: list[str]) -> None:
    assert job.run("measure", **exits).returncode == code
    assert [line.split()[0] for line in job.log() if not line.startswith("image")] == commands
    assert re.search(rf"There is no answer: the \w+ (`base` )?ended with exit code {code}\.", job.summary())
    assert (job.top / "bench" / "app.tar").read_text() == "image of the pull request\n"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"REPEAT_BASE": "yes"}, "neither true nor false"),
        ({"REPEAT_BASE": "true", "BASE_IMAGE": "", "BASELINE": "base.tar"}, "repeat-base needs base-image"),
        ({"BASE_IMAGE": ""}, "either base-image or baseline"),
        ({"BASELINE": "base.tar"}, "either base-image or baseline"),
        ({"STUDY": ""}, "study is missing"),
        ({"STUDY": "quick"}, "study: quick is not a file"),
        ({"BASE_IMAGE": "none.tar"}, "base-image: none.tar is not a file"),
        ({"BASE_IMAGE": "bench/app.tar"}, "the pull request's own image"),
        ({"OUTPUT": "bench"}, "output: bench exists"),
        ({"GITHUB_TOKEN": "t"}, "a token is in the environment"),
        ({"GH_TOKEN": "t"}, "a token is in the environment"),
    ],
)
def test_wrong_inputs_are_refused_before_anything_runs(job: Job, given: dict[str, str], message: str) -> None:
    done = job.run("measure", **given)
    assert (done.returncode, job.log()) == (2, [])
    assert message in done.stderr
    assert "\n  next: " in done.stderr


@pytest.mark.parametrize("study", [STUDY.format("app.tar:app:1.0"), STUDY.replace("docker-", "oci-").format("app.tar")])
def test_the_image_is_the_one_that_the_study_names(job: Job, study: str) -> None:
    (job.top / "bench" / "ci.toml").write_text(study)
    assert job.run("measure").returncode == 0
    assert "image of the base" in job.log()


@pytest.mark.parametrize(
    ("study", "message"),
    [
        ('name = "ci"\n', "names no archive as its image"),
        ('name = "ci"\nimage = 3\n', "names no archive as its image"),
        ("name = \n", "names no archive as its image"),
        ('[image.workload]\nfrom = "docker://example.org/app:1"\n', "names no archive as its image"),
        (STUDY.format("other.tar"), "bench/other.tar, the image of bench/ci.toml, is not a file"),
    ],
)
def test_a_study_whose_image_cannot_be_exchanged_is_refused(job: Job, study: str, message: str) -> None:
    """Otherwise both campaigns would measure one image, and every gate would hold."""
    (job.top / "bench" / "ci.toml").write_text(study)
    done = job.run("measure")
    assert (done.returncode, job.log()) == (2, [])
    assert message in done.stderr


def test_what_was_printed_cannot_leave_its_block(job: Job) -> None:
    (job.top / "says").write_text("a ```` b\n```\n### No gate failed\n")
    job.run("measure")
    assert job.summary().endswith("`````text\na ```` b\n```\n### No gate failed\n`````\n")


def test_the_answer_of_the_real_comparison_names_gates_that_are_not_resolved(job: Job, tmp_path: Path) -> None:
    """Two rounds are a pilot, of which no gate can be judged; `inconclusive` makes that a failure."""
    providers = {name: FakeProvider(name, tmp_path / "fake") for name in ("host", "box")}
    for name in ("a", "b"):
        made = new_campaign(tmp_path / name, providers)
        store(made, {trial: as_fast(PRINTED, 1.0, 3 * n) for n, trial in enumerate(planned(made.plan()))})
    real = f"{sys.executable} -m vtax.cli"
    job.program("vtax", f'#!/bin/sh\ncase "$1 $4" in\n  run*base) exec cp -r "{tmp_path}/a" "$4" ;;\n'
                f'  run*) exec cp -r "{tmp_path}/b" "$4" ;;\nesac\nexec {real} "$@"\n')  # fmt: skip
    done = job.run("measure", FAIL_ON="any primary slower than 5%\ninconclusive")
    assert done.returncode == 5, done.stdout + done.stderr
    assert "**A gate failed.** Not resolved, so neither failed nor held: 1 of 2." in job.summary()
    assert 'gate "inconclusive": failed' in job.summary()
    assert (job.top / "out" / "vtax.xml").read_text().startswith("<?xml")


@pytest.mark.parametrize(("speed", "code"), [(1.0, 0), (0.8, 5)])
def test_a_slower_pull_request_fails_its_gate(job: Job, tmp_path: Path, speed: float, code: int) -> None:
    """The real comparison of campaigns of six rounds: the same image again, and a slower one."""
    providers = {name: FakeProvider(name, tmp_path / "fake") for name in ("host", "box")}
    for name, factor in (("a", 1.0), ("b", speed)):
        made = new_campaign(tmp_path / name, providers, rounds=6)
        texts = {trial: as_fast(PRINTED, factor, n + (name == "b")) for n, trial in enumerate(planned(made.plan()))}
        store(made, texts)
    real = f"{sys.executable} -m vtax.cli"
    job.program("vtax", f'#!/bin/sh\ncase "$1 $4" in\n  run*base) exec cp -r "{tmp_path}/a" "$4" ;;\n'
                f'  run*) exec cp -r "{tmp_path}/b" "$4" ;;\nesac\nexec {real} "$@"\n')  # fmt: skip
    done = job.run("measure", FAIL_ON="any primary slower than 5%")
    assert done.returncode == code, done.stdout + done.stderr
    assert ("**A gate failed.**" if code else "No gate failed.") in job.summary()
    assert "Not resolved" not in job.summary()


# --- the comment ---------------------------------------------------------------------------------------------------


def test_the_answer_is_posted_with_the_token(job: Job) -> None:
    job.run("measure")
    before = len(job.log())
    assert job.run("comment", GITHUB_TOKEN="t").returncode == 0
    assert job.log()[before:] == ["pr comment 7 --repo someone/app --body-file -", "t"]
    assert (job.top / "posted").read_text() == job.summary()


@pytest.mark.parametrize("given", [{}, {"GITHUB_TOKEN": "t", "GITHUB_EVENT_PATH": ""}, {"event": '{"ref": "x"}'}])
def test_without_a_token_or_a_pull_request_nothing_is_posted(job: Job, given: dict[str, str]) -> None:
    job.run("measure")
    if "event" in given:
        (job.top / "event.json").write_text(given["event"])
        given = {"GITHUB_TOKEN": "t"}
    done = job.run("comment", **given)
    assert (done.returncode, (job.top / "posted").exists()) == (0, False)
    assert done.stdout.startswith("no comment: ")


def test_a_refused_comment_is_a_warning(job: Job) -> None:
    job.run("measure")
    done = job.run("comment", GITHUB_TOKEN="t", GH_EXIT="1")
    assert (done.returncode, done.stdout.startswith("::warning::")) == (0, True)


def test_a_comment_has_room_for_the_end_of_a_long_answer(job: Job) -> None:
    (job.top / "says").write_text("".join(f"line {n} of ```\n" for n in range(9000)) + "the last line\n")
    job.run("measure")
    job.run("comment", GITHUB_TOKEN="t")
    posted = (job.top / "posted").read_text()
    assert 50_000 < len(posted) <= 65_536
    assert posted.startswith(job.summary().partition("\n\n````")[0])
    assert "The beginning is left out; the step's summary has all of it.\n\n````text\nline " in posted
    assert posted.endswith("the last line\n````\n")


# --- action.yml ----------------------------------------------------------------------------------------------------


def test_actions_are_pinned_and_no_input_becomes_a_command() -> None:
    used = re.findall(r"uses: *(.*)", ACTION)
    release = (TOP / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert used
    assert [one for one in used if re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one) is None] == []
    assert [one for one in used if f"uses: {one}\n" not in release] == []
    steps = ACTION.partition("\n  steps:\n")[2].split("    - name: ")[1:]
    assert len(steps) == 4
    runs = [re.sub(r"\n      (env|uses|with):(?s:.*)", "", one).partition("run:")[2] for one in steps]
    assert [one for one in runs if "${{" in one] == []
    assert [name for name, one in zip("abcd", steps, strict=True) if "token" in one] == ["c"]


def test_the_action_gives_the_script_what_it_reads() -> None:
    inputs = set(re.findall(r"^  ([a-z-]+):$", ACTION.partition("\nruns:")[0], re.MULTILINE))
    used = set(re.findall(r"inputs\.([a-z-]+)", ACTION))
    assert inputs == used
    read = set(re.findall(r'given(?:\.get\(|\[)"([A-Z_]+)"', SCRIPT.read_text(encoding="utf-8")))
    passed = set(re.findall(r"^        ([A-Z_]+): ", ACTION, re.MULTILINE))
    runner = {"GITHUB_STEP_SUMMARY", "GITHUB_EVENT_PATH", "GITHUB_REPOSITORY"}
    assert read - runner - {"GH_TOKEN"} == passed
    for name in inputs:
        assert f"`{name}`" in (TOP / "docs" / "ci.md").read_text(encoding="utf-8")
    assert os.access(TOP / "scripts" / "bootstrap", os.X_OK)
    assert os.access(SCRIPT, os.X_OK)


def test_the_gates_of_the_example_fit_its_study() -> None:
    page = (TOP / "docs" / "ci.md").read_text(encoding="utf-8")
    study = parse(page.partition("```toml\n")[2].partition("```")[0], "ci.toml")
    lines = page.partition("fail-on: |\n")[2].partition("```")[0].splitlines()
    gates = parse_gates([line.strip() for line in lines])
    assert [gate.label for gate in gates] == ["app", ""]
    check_gates(gates, study, declared_metrics(study.benchmarks), baseline=True)
    assert study.image.workload is not None
    assert re.search(r"^on: pull_request$", page, re.MULTILINE)
