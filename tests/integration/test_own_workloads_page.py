"""The studies of docs/own-workloads.md as a new user runs them, in every environment that works here: Redis,
PostgreSQL, and a program of one's own in an image of one's own. Every number is read from the raw files a second time,
by code that shares nothing with vtax."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import polars
import pytest
from openpyxl import load_workbook

from builders.oci import Layout, configuration, directory, file, layer
from vtax.paths import Paths

from .conftest import Vtax, finish

pytestmark = pytest.mark.integration
PAGE = Path(__file__).parents[2] / "docs/own-workloads.md"
EVERYWHERE = """
[environments]
host = { provider = "host" }
docker = { provider = "docker" }
podman = { provider = "podman" }
vm = { provider = "qemu" }
"""
PROGRAM = r"""
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
static unsigned long letters;
static void *work(void *unused) {
  for (volatile unsigned long i = 0; i < 20000000; i++) __atomic_fetch_add(&letters, i & 1, __ATOMIC_RELAXED);
  return unused;
}
int main(int count, char **words) { /* work --input FILE --threads N */
  FILE *input = count == 5 ? fopen(words[2], "r") : NULL;
  if (!input || fgetc(input) != 'x') return perror("input"), 1;
  pthread_t threads[64];
  int wanted = atoi(words[4]);
  for (int i = 0; i < wanted; i++) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < wanted; i++) pthread_join(threads[i], NULL);
  return printf("%lu\n", letters) < 0;
}
"""
# What a person looks for in a raw file, by metric: the file's name and the number in it.
BY_EYE = {
    ("redis", "get"): ("stdout", r'^"GET","([0-9.]+)"'),
    ("pgbench", "tps"): ("stdout", r"^tps = ([0-9.]+) \(without"),
}
COUNTED = {"wall": ("wall_s",), "user": ("user_s",), "system": ("system_s",), "cpu": ("user_s", "system_s")}
COUNTED |= {"max_rss": ("max_rss_bytes",), "faults": ("minor_faults", "major_faults")}
COUNTED |= {"switches": ("voluntary_switches", "involuntary_switches")}


def study_of(place: Path, heading: str, environments: str = EVERYWHERE) -> str:
    """The study below a heading of the page, for one round in these environments; returns its name."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}\n")[1]
    text = re.findall(r"```toml\n(.*?)```", section, re.DOTALL)[0]
    text = re.sub(r"^environments = .*\n", "", text, flags=re.MULTILINE)
    text = re.sub(r'^\[environments\.\w+\]\nprovider = "\w+"\n', "", text, flags=re.MULTILINE)
    head, rest = text.split('baseline = "host"\n')
    name = re.findall(r'^name = "(\w+)"', head)[0]
    (place / f"{name}.toml").write_text(f'{head}baseline = "host"\nrounds = 1\n{environments}{rest}')
    return str(name)


def write_image(place: Path, compiler: str) -> None:
    """An image whose only file is a static program."""
    (place / "work.c").write_text(PROGRAM)
    made = (compiler, "-static", "-O1", "-pthread", "-o", str(place / "work"), str(place / "work.c"))
    subprocess.run(made, check=True, timeout=60)
    program = file("app/work", (place / "work").read_bytes(), mode=0o755)
    layers = [layer([directory("app"), program])]
    layout = Layout(place / "layout")
    layout.add(layout.image(configuration(layers, Cmd=["/app/work"]), layers), "work")
    (place / "input.txt").write_text("x\n")
    subprocess.run(["tar", "-C", str(place / "layout"), "-cf", str(place / "work.tar"), "."], check=True, timeout=60)


def checked(campaign: Path, rows: list[dict[str, str]]) -> dict[tuple[str, str], float]:
    """Compare every exported number of the commands with the raw files. Returns them by environment and metric."""
    found = {}
    for row in rows:
        raw = (campaign / row["source"]).read_text(encoding="utf-8") if row["source"] else ""
        key, value = (row["entry"], row["metric"]), float(row["value"])
        if key in BY_EYE:
            output, pattern = BY_EYE[key]
            assert row["source"].endswith(output)
            (number,) = re.findall(pattern, raw, re.MULTILINE)
            assert value == float(number), row
        elif row["metric"] in COUNTED:
            usage = json.loads(raw)
            assert value == pytest.approx(sum(usage[name] for name in COUNTED[row["metric"]]), rel=1e-12), row
        else:
            assert row["metric"] in ("memory_peak", "machine_cpu_time", "node_cpu_time", "machine_energy"), row
        found[row["environment"], row["metric"]] = value
    return found


def exported(vtax: Vtax, place: Path, campaign: str, kind: str) -> Path:
    path = place / f"{campaign}.{kind}"
    code, _, err = finish(vtax("export", campaign, "--format", kind, "-o", path.name))
    assert code == 0, err
    return path


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"), newline="")))


@pytest.mark.long
@pytest.mark.parametrize(
    ("heading", "decides"),
    [
        ("Redis, in fifteen lines", "get"),
        ("PostgreSQL with pgbench", "tps"),
        ("A program of your own, in an image", "wall"),
    ],
)
def test_the_page_alone_measures_in_every_environment(
    heading: str, decides: str, vtax: Vtax, places: Paths, tmp_path: Path
) -> None:
    name = study_of(tmp_path, heading)
    if name == "work":
        text = (tmp_path / "work.toml").read_text().replace("docker-archive:work.tar", "oci-archive:work.tar")
        (tmp_path / "work.toml").write_text(text)
        write_image(tmp_path, "musl-gcc")
    code, _, err = finish(vtax("plan", f"{name}.toml"))
    assert code == 0, err
    code, _, err = finish(vtax("run", f"{name}.toml", "-o", "campaign"), timeout_s=900)
    assert code == 0, err
    found = checked(tmp_path / "campaign", rows_of(exported(vtax, tmp_path, "campaign", "csv")))
    for environment in ("host", "docker", "podman", "vm"):
        for metric in (decides, "wall", "cpu", "max_rss", "switches"):
            assert found[environment, metric] > 0, (environment, metric)


def sheets(path: Path) -> Iterator[tuple[str, float]]:
    """Metric and value of every row of a workbook."""
    with closing(load_workbook(path, read_only=True)) as book:
        about, *every = book
        assert about.title == "about"
        for sheet in every:
            header, *rows = sheet.iter_rows(values_only=True)
            names = list(map(str, header))
            for row in rows:
                said = dict(zip(names, row, strict=True))
                yield str(said["metric"]), float(str(said["value"]))


def test_every_exported_file_has_the_numbers_of_the_raw_files(vtax: Vtax, places: Paths, tmp_path: Path) -> None:
    """`vtax measure --export` and `vtax export` in all formats; a musl program that is all that its image has."""
    write_image(tmp_path, "musl-gcc")
    about = ("--in", "host,docker", "--rounds", "1", "--image", "oci-archive:work.tar", "--file", "input.txt")
    more = ("--metric", "letters=([0-9]+) 1 higher", "--export", "all.csv", "-o", "campaign")
    code, _, err = finish(vtax("measure", *about, *more, "--", "/app/work", "--input", "input.txt", "--threads", "2"))
    assert code == 0, err
    campaign, first = tmp_path / "campaign", rows_of(tmp_path / "all.csv")
    outputs = {row["source"]: row for row in first if row["metric"] == "letters"}
    assert len(outputs) == 8, "four runs in each of two environments"
    for source, row in outputs.items():
        assert float(row["value"]) == float((campaign / source).read_text()) == 20_000_000
    checked(campaign, [row for row in first if row["metric"] != "letters"])
    wanted = sorted((row["metric"], float(row["value"])) for row in first)
    assert rows_of(exported(vtax, tmp_path, "campaign", "csv")) == first
    lines = exported(vtax, tmp_path, "campaign", "jsonl").read_text().splitlines()
    assert sorted((one["metric"], one["value"]) for one in map(json.loads, lines) if "metric" in one) == wanted
    table = polars.read_parquet(exported(vtax, tmp_path, "campaign", "parquet")).to_dicts()
    assert sorted((one["metric"], one["value"]) for one in table) == wanted
    assert sorted(sheets(exported(vtax, tmp_path, "campaign", "xlsx"))) == wanted
