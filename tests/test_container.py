"""The Dockerfile and the conda environment: they parse, and what they name exists and agrees with pyproject.toml."""

import json
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
INSTRUCTIONS = {"FROM", "ARG", "WORKDIR", "COPY", "RUN", "USER", "ENTRYPOINT", "CMD"}
"""Of Docker's instructions, those that the Dockerfile uses; none other is expected."""

EXTRAS = re.compile(r"\[([a-z,]+)\]")


def instructions() -> list[tuple[str, str]]:
    """(instruction, arguments) of the Dockerfile, without comments, with continued lines joined."""
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    code = "\n".join(line for line in text.splitlines() if not line.startswith("#"))
    lines = [line for line in re.sub(r"\\\n\s*", "", code).splitlines() if line.strip()]
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines]


def values(name: str) -> list[str]:
    return [arguments for instruction, arguments in instructions() if instruction == name]


def copied() -> list[str]:
    """The paths of the repository that the Dockerfile copies."""
    return [path for arguments in values("COPY") if "--from" not in arguments for path in arguments.split()[:-1]]


def environment() -> dict[str, Any]:
    content = yaml.safe_load((ROOT / "environment.yml").read_text(encoding="utf-8"))
    assert isinstance(content, dict)
    return content


def pip_options() -> list[str]:
    (section,) = (entry["pip"] for entry in environment()["dependencies"] if isinstance(entry, dict))
    return [str(option) for option in section]


def versions_of_python() -> set[str]:
    images = [re.match(r"python:([0-9.]+)-slim( |$)", image) for image in values("FROM")]
    assert all(images), f"base images are {values('FROM')}"
    (conda,) = (entry for entry in environment()["dependencies"] if str(entry).startswith("python="))
    return {image[1] for image in images if image} | {conda.removeprefix("python=")}


def test_the_dockerfile_has_only_known_instructions_and_starts_with_an_image() -> None:
    names = [name for name, _ in instructions()]
    assert set(names) == INSTRUCTIONS
    assert names[0] == "FROM"


def test_every_command_of_the_dockerfile_is_valid_shell() -> None:
    for command in values("RUN"):
        subprocess.run(["sh", "-n", "-c", command], check=True)  # noqa: S607 (sh of the machine, as in the image)


def test_every_copied_path_exists() -> None:
    assert copied()
    assert [path for path in copied() if not (ROOT / path).exists()] == []


def test_dockerignore_lets_through_exactly_what_the_dockerfile_copies() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if not line.startswith("#")]
    assert rules[0] == "*"
    assert {rule.removeprefix("!") for rule in rules if rule.startswith("!")} == set(copied())


def test_the_image_runs_closerlook_as_a_user_without_privileges() -> None:
    (command,) = (json.loads(entry) for entry in values("ENTRYPOINT"))
    assert command[0] in PROJECT["scripts"]
    (user,) = values("USER")
    assert f"useradd --create-home {user} " in values("RUN")[-1]
    assert json.loads(values("CMD")[0]) == ["--help"]


def test_image_and_environment_have_the_same_supported_python() -> None:
    (version,) = versions_of_python()
    assert version in SpecifierSet(PROJECT["requires-python"])
    workflow = yaml.safe_load((ROOT / ".github/workflows/checks.yml").read_text(encoding="utf-8"))
    assert version in workflow["jobs"]["test"]["strategy"]["matrix"]["python"]


def test_image_and_environment_install_the_same_extras_with_the_pinned_versions() -> None:
    installed = values("RUN")[-1]
    found = [EXTRAS.findall(installed), EXTRAS.findall(" ".join(pip_options()))]
    assert found[0] == found[1]
    assert set(found[0][0].split(",")) <= set(PROJECT["optional-dependencies"])
    assert pip_options()[0] == "--constraint constraints.txt"
    pip = [part for command in values("RUN") for part in command.split("&&") if "pip install" in part]
    assert len(pip) == 2
    assert [part for part in pip if not {"constraints.txt", "/tmp/constraints.txt"} & set(shlex.split(part))] == []  # noqa: S108 (a path in the image)


def test_every_requirement_of_image_and_environment_is_pinned_to_a_version_that_it_allows() -> None:
    pins = [Requirement(line) for line in (ROOT / "constraints.txt").read_text().splitlines() if "==" in line]
    exact = {canonicalize_name(pin.name): next(iter(pin.specifier)).version for pin in pins}
    extras = EXTRAS.findall(values("RUN")[-1])[0].split(",")
    texts = PROJECT["dependencies"] + [text for extra in extras for text in PROJECT["optional-dependencies"][extra]]
    needed = [Requirement(text) for text in [*texts, "hatchling", "ziglang"]]
    assert [need.name for need in needed if canonicalize_name(need.name) not in exact] == []
    assert [need for need in needed if exact[canonicalize_name(need.name)] not in need.specifier] == []


def test_no_address_is_in_the_files() -> None:
    for name in ("Dockerfile", ".dockerignore", "environment.yml"):
        assert "://" not in (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_copied_paths_are_enough_to_build_the_wheel(tmp_path: Path) -> None:
    for path in copied():
        if (ROOT / path).is_dir():
            shutil.copytree(ROOT / path, tmp_path / path, ignore=shutil.ignore_patterns("kernels.so*", "__pycache__"))
        else:
            shutil.copy(ROOT / path, tmp_path)
    subprocess.run([sys.executable, "-m", "hatchling", "build", "--target", "wheel"], cwd=tmp_path, check=True)
    (wheel,) = (tmp_path / "dist").iterdir()
    listed = subprocess.run(
        [sys.executable, "-m", "zipfile", "--list", str(wheel)], check=True, capture_output=True, text=True
    ).stdout
    assert "closerlook/geometry/native/kernels.so" in listed
