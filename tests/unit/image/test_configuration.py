"""What an image says about itself, and the options of vtax-run that this comes to."""

from __future__ import annotations

import json
from typing import Any

import pytest

from builders.oci import HERE, configuration, layer, sha256
from vtax.errors import UsageError
from vtax.image.workload.configuration import DEFAULT_PATH, options, parse, refuse_foreign, terminated


def test_everything_an_image_sets_becomes_an_option() -> None:
    found = parse(
        configuration(
            [layer([])],
            Env=["PATH=/usr/local/bin", "EMPTY=", "A=b=c d"],
            Entrypoint=["docker-entrypoint.sh"],
            Cmd=["redis-server", ""],
            User="redis:999",
            WorkingDir="/data/",
        ),
        "app",
    )
    assert options(found) == (
        *("--directory", "/data", "--user", "redis:999"),
        *("--set", "PATH=/usr/local/bin", "--set", "EMPTY=", "--set", "A=b=c d"),
    )
    assert found.entry == ("docker-entrypoint.sh", "redis-server", "")
    assert terminated(found.entry) == b"docker-entrypoint.sh\0redis-server\0\0"  # the empty last word is there


@pytest.mark.parametrize("run", [{}, {"Env": None, "Entrypoint": None, "Cmd": None}])
def test_what_an_image_leaves_open_is_as_with_docker(run: dict[str, Any]) -> None:
    found = parse(configuration([layer([])], **run), "app")
    assert options(found) == ("--directory", "/", "--set", DEFAULT_PATH)
    assert found.entry == ()
    assert terminated(found.entry) == b""


def test_a_configuration_without_a_part_for_running() -> None:
    content = {"architecture": HERE, "os": "linux", "rootfs": {"type": "layers", "diff_ids": []}}
    assert parse(json.dumps(content).encode(), "app").layers == ()


@pytest.mark.parametrize(
    ("given", "absolute"), [("", "/"), ("/", "/"), ("app", "/app"), ("//app/./x", "/app/x"), ("/a/../../b", "/b")]
)
def test_working_directories_start_at_the_root(given: str, absolute: str) -> None:
    assert parse(configuration([], WorkingDir=given), "app").working_directory == absolute


@pytest.mark.parametrize(
    ("run", "reason"),
    [
        ({"Env": ["A=b\0c"]}, "NUL"),
        ({"Cmd": ["a\0"]}, "NUL"),
        ({"Env": ["PATH=/bin", "JUST_A_NAME"]}, "'JUST_A_NAME' of its environment is not NAME=VALUE"),
        ({"Env": ["=x"]}, "not NAME=VALUE"),
        ({"User": "a:b:c"}, "'a:b:c' is not a user"),
        ({"User": "\x1b[2J"}, r"is not a user"),
        ({"Entrypoint": "sh"}, "its configuration is damaged, or not one of an image: config.Entrypoint"),
    ],
)
def test_configurations_that_cannot_be_used(run: dict[str, Any], reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as raised:
        parse(configuration([], **run), "app")
    assert "\x1b" not in str(raised.value)


@pytest.mark.parametrize("content", [b"", b"{}", b"[]", b"\xff\xfe", b'{"architecture": 1}'])
def test_what_is_not_a_configuration(content: bytes) -> None:
    with pytest.raises(UsageError, match="app: its configuration is damaged"):
        parse(content, "app")


def test_layers_are_named_by_sha256() -> None:
    content = json.loads(configuration([layer([])]))
    assert parse(json.dumps(content).encode(), "app").layers == (f"sha256:{sha256(layer([]))}",)
    content["rootfs"]["diff_ids"] = ["sha256:../../etc"]
    with pytest.raises(UsageError, match="layers are not named by sha256"):
        parse(json.dumps(content).encode(), "app")


def test_an_image_for_another_processor_says_which() -> None:
    found = parse(configuration([], architecture="s390x"), "docker-archive:app.tar")
    with pytest.raises(UsageError) as raised:
        refuse_foreign(found, "x86_64", "docker-archive:app.tar")
    assert str(raised.value).splitlines() == [
        "docker-archive:app.tar is an image for linux/s390x; this machine needs linux/amd64",
        "  next: build or save the image for this machine: --platform linux/amd64",
    ]
    refuse_foreign(parse(configuration([], architecture="arm64"), "app"), "aarch64", "app")
