"""The Dockerfile and .dockerignore are held to their rules without building anything."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from qnn.toolchains.pip.toolchain import KNOWN_BUILDS
from tests.docker.parse import DOCKER, DOCKERFILE, ignore_patterns, ignored, instructions

ROOT = DOCKER.parent
TEXT = DOCKERFILE.read_text(encoding="utf-8")
ALL = instructions(TEXT)
HEADER = TEXT[: TEXT.index("\n\n")]
STAGES = ("build", "pip", "kits", "sdk")
IMAGES = ("pip", "sdk")


def rests(keyword: str, stage: str | None = None) -> list[str]:
    return [item.rest for item in ALL if item.keyword == keyword and stage in (None, item.stage)]


def argument(name: str) -> str:
    (default,) = {rest.partition("=")[2] for rest in rests("ARG") if rest.startswith(f"{name}=")}
    return default


def test_hadolint_finds_nothing() -> None:
    hadolint = Path(sys.executable).with_name("hadolint")
    done = subprocess.run([str(hadolint), "--no-color", str(DOCKERFILE)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_stages_in_an_order_in_which_no_target_needs_a_later_one() -> None:
    # buildah before 1.30 builds every stage up to the target, so `kits`, which wants a licence, stands after `pip`.
    assert rests("FROM") == ["${BASE} AS build", "${BASE} AS pip", "${BASE} AS kits", "pip AS sdk"]


@pytest.mark.parametrize("stage", IMAGES)
def test_images_run_as_a_user_and_are_checked_by_the_doctor(stage: str) -> None:
    own = [item for item in ALL if item.stage == stage]
    users = [item.rest for item in ALL if item.stage in IMAGES[: IMAGES.index(stage) + 1] and item.keyword == "USER"]
    assert users == ["${USER_ID}:${USER_ID}"]
    assert argument("USER_ID") == "1001"
    assert [item.rest for item in own if item.keyword == "RUN"][-1] == '["qnn-forge", "doctor"]'


def test_nothing_is_added_from_an_address_and_only_plain_syntax_is_used() -> None:
    assert {item.keyword for item in ALL} <= {
        "ARG", "CMD", "COPY", "ENTRYPOINT", "ENV", "FROM", "LABEL", "RUN", "USER", "WORKDIR",
    }  # fmt: skip
    assert "<<" not in TEXT  # buildah 1.28 has no here-documents


def test_every_argument_is_documented_in_the_header_and_every_documented_one_is_used() -> None:
    arguments = {rest.partition("=")[0] for rest in rests("ARG")}
    documented = set(re.findall(r"^#   (?=[A-Z])((?:[A-Z0-9_]+(?:, )?)+)  ", HEADER, re.MULTILINE))
    assert arguments == {name for names in documented for name in names.split(", ")}


def test_every_argument_is_documented_on_the_page() -> None:
    page = (ROOT / "docs" / "docker.md").read_text(encoding="utf-8")
    missing = [rest.partition("=")[0] for rest in rests("ARG") if f"`{rest.partition('=')[0]}`" not in page]
    assert missing == []


def test_no_secret_can_get_into_a_layer() -> None:
    names = [word.partition("=")[0] for keyword in ("ARG", "ENV") for rest in rests(keyword) for word in rest.split()]
    assert [name for name in names if re.search("TOKEN|PASSWORD|SECRET|CREDENTIAL|_KEY", name)] == []
    # Addresses may hold a secret: they stay in the stage of which only folders are copied.
    assert {item.stage for item in ALL if "_URL" in item.rest} == {"kits"}
    assert [rest for rest in rests("COPY", "sdk") if "--from=kits" in rest] == ["--from=kits /opt/kits /opt/kits"]
    assert "--mount=type=secret,id=authorization " in rests("RUN", "kits")[0]


def test_no_cache_is_left() -> None:
    assert "PIP_NO_CACHE_DIR=1" in rests("ENV", "build")[0]
    (apt,) = [rest for rest in rests("RUN") if "apt-get" in rest]
    assert "--no-install-recommends" in apt
    assert "rm -rf /var/lib/apt/lists/* /var/cache/apt/*" in apt
    assert rests("COPY", "pip") == ["--from=build /opt/qnn-forge /opt/qnn-forge"]


def test_every_install_is_held_to_the_constraints_or_to_the_wheel_made_here() -> None:
    installs = [command for rest in rests("RUN") for command in rest.split("&&") if "pip install" in command]
    assert len(installs) == 3
    assert all("-c constraints.txt" in command or "--no-deps --no-index" in command for command in installs)


def test_labels_name_the_toolchain_the_licence_and_where_it_comes_from() -> None:
    labels = dict(re.findall(r'([\w.-]+)="([^"]*)"', " ".join(rests("LABEL", "pip"))))
    assert labels["io.qnn-forge.qairt"] == "${QAIRT_VERSION}"
    assert labels["io.qnn-forge.onnxruntime-qnn"] == "${ONNXRUNTIME_QNN_VERSION}"
    assert labels["org.opencontainers.image.licenses"] == "Apache-2.0 AND LicenseRef-Qualcomm-QAIRT"
    standard = {"title", "description", "licenses", "source", "documentation", "revision", "version"}
    assert {name.rpartition(".")[2] for name in labels if name.startswith("org.opencontainers.")} == standard
    assert 'io.qnn-forge.toolchain="sdk"' in rests("LABEL", "sdk")[0]


def test_the_default_toolchain_is_the_pinned_one() -> None:
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    wheel = argument("ONNXRUNTIME_QNN_VERSION")
    assert f"\nonnxruntime-qnn=={wheel}\n" in constraints
    assert KNOWN_BUILDS[wheel].startswith(f"v{argument('QAIRT_VERSION')}.")


def test_what_the_image_is_built_with_is_pinned() -> None:
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert re.search(r"^hatchling==", constraints, re.MULTILINE)


def test_the_packages_of_the_image_are_those_of_the_toolkit() -> None:
    pyproject = ROOT / "pyproject.toml"
    command = [sys.executable, "-I", str(DOCKER / "requirements.py"), str(pyproject)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == tomllib.loads(pyproject.read_text())["project"]["dependencies"]


PATTERNS = ignore_patterns((ROOT / ".dockerignore").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "path",
    [
        ".git/config", ".venv/bin/python", "dist/a.tar.gz", ".store/objects/x", ".hypothesis/x", ".mypy_cache/x",
        "models/silero-vad/model.yaml", "tests/docker/parse.py", "docs/docker.md", ".env", "secrets.txt",
        "docker/Dockerfile", "scripts/qnn/__pycache__/x.cpython-311.pyc", "scripts/qnn/x.pyc", "benchmarks/x.py",
        ".github/workflows/x.yaml",
    ],
)  # fmt: skip
def test_the_build_does_not_see(path: str) -> None:
    assert ignored(path, PATTERNS)


def test_the_build_sees_what_it_copies_and_a_change_of_anything_else_keeps_its_cache() -> None:
    copied = {word for rest in rests("COPY") if "--from" not in rest for word in rest.split()[:-1]}
    assert copied == {pattern.removeprefix("!") for pattern in PATTERNS if pattern.startswith("!")}
    assert all((ROOT / name).exists() and not ignored(name, PATTERNS) for name in copied)
    assert not ignored("scripts/qnn/cli/__init__.py", PATTERNS)
