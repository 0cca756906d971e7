"""The login of a registry that machines pull with: found where skopeo finds it, and no other one given away."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import pytest

from fakes.cluster import node_shape
from vtax.errors import ImageError
from vtax.providers.kubernetes import images, login, manifests
from vtax.providers.kubernetes.options import KubernetesOptions
from vtax.transport import process

OPTIONS = KubernetesOptions(nodes={"master": "n1"}, registry="registry.lab:5000/vtax", registry_login=True)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """That of skopeo."""
    path = tmp_path / "auth.json"
    monkeypatch.setenv("REGISTRY_AUTH_FILE", str(path))
    return path


def logins(**several: str) -> dict[str, Any]:
    return {"auths": {name.replace("__", "/").replace("_", "."): {"auth": auth} for name, auth in several.items()}}


def write(path: Path, content: object) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("registry", "expected"),
    [
        ("registry.lab", {"registry.lab": {"auth": "all"}}),
        ("registry.lab/team/vtax", {"registry.lab/team": {"auth": "team"}}),
        ("other.lab/team", {"other.lab": {"auth": "other"}}),
    ],
)
def test_only_the_login_of_the_registry_is_given(file: Path, registry: str, expected: dict[str, Any]) -> None:
    write(file, logins(registry_lab="all", registry_lab__team="team", other_lab="other"))
    assert json.loads(login.found(registry)) == {"auths": expected}


def test_it_is_searched_for_where_skopeo_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("REGISTRY_AUTH_FILE", raising=False)
    monkeypatch.delenv("DOCKER_CONFIG", raising=False)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    write(tmp_path / "home/.docker/config.json", logins(registry_lab="docker"))
    assert json.loads(login.found("registry.lab")) == logins(registry_lab="docker")
    write(tmp_path / "run/containers/auth.json", logins(registry_lab="skopeo"))
    assert json.loads(login.found("registry.lab")) == logins(registry_lab="skopeo")
    monkeypatch.delenv("XDG_RUNTIME_DIR")
    assert next(login.files()) == Path(f"/run/containers/{os.geteuid()}/auth.json")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (logins(other_lab="other"), "there is no login of registry.lab:5000 for the machines"),
        ({"credsStore": "pass"}, "is kept by the program docker-credential-pass, and not in a file"),
        ({"credHelpers": {"registry.lab:5000": "gcloud"}}, "is kept by the program docker-credential-gcloud"),
        ([], "is not a file with logins"),
    ],
)
def test_a_login_that_cannot_be_given_is_refused(file: Path, content: object, expected: str) -> None:
    write(file, content)
    with pytest.raises(ImageError, match=expected) as caught:
        login.found("registry.lab:5000/vtax")
    assert "skopeo login" in caught.value.remedy


def test_a_file_that_is_damaged_is_named(file: Path) -> None:
    file.write_text("{")
    with pytest.raises(ImageError, match=f"{file} cannot be read"):
        login.found("registry.lab")


def test_the_login_is_looked_for_before_anything_is_created(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "installed", lambda program: True)
    write(file, logins(registry_lab="all"))
    with pytest.raises(ImageError, match="there is no login of registry"):
        list(images.problems(OPTIONS))
    assert list(images.problems(OPTIONS.model_copy(update={"registry_login": False}))) == []


def test_pods_pull_with_a_secret_that_has_it() -> None:
    owner = manifests.Owner("0123abcd", "/run", "here")
    order = manifests.Order(owner, "space", OPTIONS, "image", 22, "/shared")
    node = node_shape("master", (0,))
    _, secret, pod = order.objects([node], [order.login(b"{}")])
    assert secret["type"] == "kubernetes.io/dockerconfigjson"
    assert base64.b64decode(secret["data"][".dockerconfigjson"]) == b"{}"
    assert pod["spec"]["imagePullSecrets"] == [{"name": secret["metadata"]["name"]}]
    plain = manifests.Order(owner, "space", KubernetesOptions(nodes={"master": "n1"}), "image", 22, "/shared")
    assert "imagePullSecrets" not in plain.pod(node)["spec"]


def test_a_login_of_no_registry_is_a_mistake() -> None:
    options = KubernetesOptions(nodes={"master": "n1"}, registry_login=True)
    assert options.wrong_nodes(["master"]) == "registry_login is of a registry, and it names none"
