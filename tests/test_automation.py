"""The files that GitHub, pre-commit and CI read: they parse, and the commands they name exist."""

import re
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.portable import FILES, SETTINGS, Setting, check_effect, supported

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = [form for form in sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml")) if form.stem != "config"]
MAKE = re.compile(r"\bmake ([a-z][a-z-]*)(?: [A-Z]+=\S+)?")


def read_yaml(path: Path) -> dict[str, Any]:
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(content, dict)
    return content


def make_targets() -> set[str]:
    """The names in .PHONY; each has a rule."""
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    names = set(re.findall(r"^\.PHONY: (.+)$", text, re.MULTILINE)[0].split())
    assert names <= set(re.findall(r"^([a-z-]+):", text, re.MULTILINE))
    return names


def extras() -> set[str]:
    return set(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"])


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_every_command_of_a_workflow_is_a_make_target(path: Path) -> None:
    jobs = read_yaml(path)["jobs"].values()
    commands = [step["run"] for job in jobs for step in job["steps"] if "run" in step]
    targets = [MAKE.fullmatch(command) for command in commands]
    assert commands
    assert all(targets), f"a step that is not `make TARGET` is among {commands}"
    assert {target[1] for target in targets if target} <= make_targets()


def test_the_workflow_tests_every_supported_python_on_linux_and_macos() -> None:
    matrix = read_yaml(ROOT / ".github" / "workflows" / "checks.yml")["jobs"]["test"]["strategy"]["matrix"]
    assert matrix == {"os": ["ubuntu-latest", "macos-latest"], "python": ["3.11", "3.12", "3.13", "3.14"]}


def test_the_workflow_makes_wheels_and_runs_the_engine_under_sanitizers() -> None:
    jobs = read_yaml(ROOT / ".github" / "workflows" / "checks.yml")["jobs"]
    assert "make wheels" in [step.get("run") for step in jobs["wheels"]["steps"]]
    assert {"name": "wheels", "path": "dist"} in [step.get("with") for step in jobs["wheels"]["steps"]]
    assert "make test-sanitized QUICK=--quick" in [step.get("run") for step in jobs["sanitized"]["steps"]]


@pytest.mark.parametrize("path", FORMS, ids=lambda path: path.name)
def test_every_issue_form_has_what_github_requires(path: Path) -> None:
    form = read_yaml(path)
    assert {"name", "description", "body"} <= set(form)
    names = [field["id"] for field in form["body"]]
    assert len(names) == len(set(names)) > 0


@pytest.mark.parametrize("name", [".ci/run", "CONTRIBUTING.md", "README.md", ".github/pull_request_template.md"])
def test_every_make_target_that_is_mentioned_exists(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    commands = MAKE.findall(text) if name == ".ci/run" else re.findall(r"(?:`|^)make ([a-z-]+)", text, re.MULTILINE)
    assert commands
    assert set(commands) <= make_targets()


def test_pre_commit_runs_the_commands_of_make_lint_and_downloads_nothing() -> None:
    (repository,) = read_yaml(ROOT / ".pre-commit-config.yaml")["repos"]
    assert repository["repo"] == "local"
    assert {hook["language"] for hook in repository["hooks"]} == {"system"}
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    recipe = makefile.split("\nlint:")[1].split("\n\n")[0]
    lines = [line.split() for line in re.findall(r"^\t\$\(BIN\)/(.+)$", recipe, re.MULTILINE)]
    hooks = [hook["entry"].removeprefix(".venv/bin/").split() for hook in repository["hooks"]]
    assert [[word for word in hook if word != "--force-exclude"] for hook in hooks] == [
        [word for word in line if word != "."] for line in lines
    ]


def test_every_stamp_file_stands_for_an_extra() -> None:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert set(re.findall(r"\$\(READY\)-([a-z]+)", text)) <= extras()


def test_every_direct_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    requirements = [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
    names = {re.split(r"[\[><=]", requirement)[0] for requirement in requirements} - {"closerlook"}
    pins = re.findall(r"^([\w.-]+)==[\w.]+$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)
    assert {normalised(name) for name in names} <= {normalised(name) for name in pins}


def normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_files_of_the_portable_tests_exist() -> None:
    assert [name for name in FILES if not (ROOT / name).exists()] == []


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_a_processor_setting_has_an_effect(setting: Setting) -> None:
    if not supported(setting):
        pytest.skip("this processor lacks the instructions")
    check_effect(setting)


def test_a_setting_without_effect_is_an_error() -> None:
    setting = Setting("typo", None, {"ATEN_CPU_CAPABILITY": "default", "OMP_NUM_THREADS": "1"}, ("[]", "AVX2 1"))
    with pytest.raises(SystemExit, match=r"setting typo has no effect: .* reported, \('\[\]', 'AVX2 1'\) expected"):
        check_effect(setting)


def test_a_processor_without_the_instructions_is_not_asked_to_run_them() -> None:
    assert not supported(Setting("future", "no-such-flag", {}, ()))
