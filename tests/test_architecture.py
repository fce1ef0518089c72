"""Structure of the package: dependencies point down, the core does not import torch, public names are listed.

`python -m tests.test_architecture` rewrites the list of public names in docs/api/index.md.
"""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import closerlook

ROOT = Path(closerlook.__file__).parent
LEVELS = [
    {"errors", "escaping", "progress", "texts", "version"},
    {"notebook", "plots"},
    {"tasks", "encoders", "geometry"},
    {"representations", "probes"},
    {"tuning", "scatter"},
    {"study"},
    {"report"},
    {"differences", "ranking"},
    {"explorer"},
    {"cli", "__init__", "__main__"},
]
"""From the lowest level up; a package may import from itself and from lower levels."""

TORCH_FREE = [
    *ROOT.glob("tasks/**/*.py"),
    *ROOT.glob("geometry/*.py"),
    *ROOT.glob("cli/*.py"),
    ROOT / "errors.py",
    ROOT / "escaping.py",
    ROOT / "notebook.py",
    ROOT / "progress.py",
    *ROOT.glob("plots/*.py"),
]
TORCH_FREE += [ROOT / "encoders" / f"{name}.py" for name in ("source", "configuration", "pooling", "template")]
TORCH_FREE += [
    ROOT / "probes" / f"{name}.py" for name in ("__init__", "direct", "training", "grid", "classifier", "control")
]
TORCH_FREE += [
    ROOT / "representations" / f"{name}.py"
    for name in (
        "space",
        "files",
        "memory",
        "npz",
        "tables",
        "directprobe",
        "points",
        "distances",
        "store",
        "writer",
        "requested",
        "extract",
    )
]
TORCH_FREE += [
    ROOT / "tuning" / f"{name}.py"
    for name in ("__init__", "finetune", "schedule", "settings", "steps", "tuned", "measures", "trainer", "weights")
]
TORCH_FREE += [
    ROOT / "tuning" / f"{name}.py" for name in ("existing", "heads", "trainable", "alarms", "budget", "growing")
]
TORCH_FREE += [
    *ROOT.glob("differences/*.py"),
    *ROOT.glob("explorer/*.py"),
    *ROOT.glob("scatter/*.py"),
    ROOT / "ranking.py",
]
TORCH_FREE += [*ROOT.glob("study/**/*.py"), *ROOT.glob("report/**/*.py")]
FILES = sorted(ROOT.rglob("*.py"))


def imports(file: Path, *, lazy: bool) -> set[str]:
    """The modules a file imports; with `lazy`, also those imported inside functions or for type checking only."""
    tree = ast.parse(file.read_text())
    nodes = ast.walk(tree) if lazy else iter(tree.body)
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return found


def part(path: Path) -> str:
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_dependencies_point_down(file: Path) -> None:
    level = next(i for i, parts in enumerate(LEVELS) if part(file) in parts)
    below = set().union(*LEVELS[:level]) | {part(file)}
    ours = {name.split(".")[1] for name in imports(file, lazy=True) if name.startswith("closerlook.")}
    if part(file) in LEVELS[-1]:
        below |= LEVELS[-1]
    assert ours <= below


@pytest.mark.parametrize("file", TORCH_FREE, ids=lambda file: str(file.relative_to(ROOT)))
def test_modules_that_read_stored_vectors_do_not_import_torch(file: Path) -> None:
    heavy = {"torch", "transformers", "datasets", "huggingface_hub", "peft"}
    modules = {name.split(".")[0] for name in imports(file, lazy=False)}
    assert not modules & heavy
    assert not {name for name in imports(file, lazy=False) if name in TORCH_MODULES}


TORCH_MODULES = {
    f"closerlook.{file.relative_to(ROOT).with_suffix('').as_posix().replace('/', '.')}"
    for file in FILES
    if "torch" in {name.split(".")[0] for name in imports(file, lazy=False)}
}


def module_name(file: Path) -> str:
    return ".".join(["closerlook", *file.relative_to(ROOT).with_suffix("").parts]).removesuffix(".__init__")


def test_no_import_of_these_modules_loads_torch_by_way_of_others() -> None:
    """One fresh process imports them all; the first that loads torch is named."""
    program = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    importlib.import_module(name)\n"
        "    loaded = {'torch', 'transformers'} & set(sys.modules)\n"
        "    assert not loaded, f'{name} loads {loaded}'\n"
    )
    names = sorted(map(module_name, TORCH_FREE))
    assert "closerlook.study.kinds.tune" in names
    run = subprocess.run([sys.executable, "-c", program, *names], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr


WRONG_PLAN = "encoders: [bert-tiny, ./nowhere]\ntasks: [toy-pos, nowhere.csv]\nlayers: 7\nwrong: 1\n"


@pytest.mark.parametrize(
    ("command", "code"),
    [(["measures"], 0), (["describe", "--help"], 0), (["--help"], 0), (["study", "plan.yaml", "--out", "x"], 2)],
)
def test_commands_that_compute_nothing_do_not_load_torch(command: list[str], code: int, tmp_path: Path) -> None:
    (tmp_path / "plan.yaml").write_text(WRONG_PLAN)
    program = (
        "import sys\n"
        "from closerlook.cli import main\n"
        "try:\n"
        "    main(sys.argv[2:])\n"
        "except SystemExit as end:\n"
        "    assert (end.code or 0) == int(sys.argv[1]), end.code\n"
        "assert not {'torch', 'sklearn', 'scipy.stats', 'scipy.optimize'} & set(sys.modules)\n"
    )
    arguments = [sys.executable, "-c", program, str(code), *command]
    run = subprocess.run(arguments, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert run.returncode == 0, run.stderr


def test_only_these_modules_import_torch() -> None:
    assert {
        "closerlook.encoders.alignment",
        "closerlook.encoders.encoder",
        "closerlook.encoders.loading",
        "closerlook.encoders.memory",
        "closerlook.probes.networks",
        "closerlook.tuning.contexts",
        "closerlook.tuning.examples",
        "closerlook.tuning.labeller",
        "closerlook.tuning.resuming",
        "closerlook.tuning.training",
    } == TORCH_MODULES


def test_tasks_and_encoders_do_not_import_each_other() -> None:
    for file in FILES:
        names = imports(file, lazy=True)
        if part(file) == "tasks":
            assert not any(name.startswith("closerlook.encoders") for name in names)
        if part(file) == "encoders":
            assert not any(name.startswith("closerlook.tasks") for name in names)


def test_every_public_name_can_be_imported() -> None:
    for name in closerlook.__all__:
        assert getattr(closerlook, name) is not None
    assert dir(closerlook) == sorted(closerlook.__all__)
    with pytest.raises(AttributeError, match="module 'closerlook' has no attribute 'nothing'"):
        _ = closerlook.nothing  # type: ignore[attr-defined]


API = ROOT.parents[1] / "docs" / "api" / "index.md"
TABLE = re.compile(r"(?<=<!-- public names -->\n).*?(?=<!-- end -->)", re.DOTALL)


def public_names() -> str:
    """A Markdown table of the public names, each with the first line of its docstring."""
    lines = ["", "| name | |", "|---|---|"]
    for name in closerlook.__all__:
        if name != "__version__":
            text = inspect.getdoc(getattr(closerlook, name))
            assert text, f"{name} has no docstring"
            first = text.splitlines()[0].replace("|", "\\|")
            lines.append(f"| `{name}` | {first} |")
    return "\n".join([*lines, "", ""])


def test_the_documented_list_of_public_names_is_up_to_date() -> None:
    listed = TABLE.search(API.read_text(encoding="utf-8"))
    assert listed is not None
    assert listed[0] == public_names(), "run python -m tests.test_architecture"


PAGE = ROOT.parents[1] / "docs" / "architecture.md"
MODULES = re.compile(r"(?<=<!-- modules -->\n).*?(?=<!-- end -->)", re.DOTALL)


def modules() -> str:
    """A Markdown list of all modules by package, each with the first line of its docstring."""
    lines, package = [], None
    for file in sorted(FILES, key=lambda file: (file.parent.relative_to(ROOT).as_posix(), file.name)):
        folder = file.parent.relative_to(ROOT).as_posix()
        if folder != package:
            package = folder
            lines += ["", f"**`closerlook/{'' if folder == '.' else f'{folder}/'}`**", ""]
        text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8")))
        assert text, f"{file} has no docstring"
        first = " ".join(text.split("\n\n")[0].split())
        lines.append(f"- `{file.name}`: {first}")
    return "\n".join([*lines, "", ""])


def test_the_architecture_page_lists_every_module() -> None:
    listed = MODULES.search(PAGE.read_text(encoding="utf-8"))
    assert listed is not None
    assert listed[0] == modules(), "run python -m tests.test_architecture"


def test_paths_on_the_architecture_page_exist() -> None:
    text = MODULES.sub("", PAGE.read_text(encoding="utf-8"))
    packages = {path.name for path in ROOT.iterdir() if path.is_dir()}
    named = [path for path in re.findall(r"`((?:\w+/)+\w*(?:\.py)?)`", text) if path.split("/")[0] in packages]
    assert len(named) > 20
    assert [path for path in named if not (ROOT / path).exists()] == []


if __name__ == "__main__":
    for page, pattern, text in ((API, TABLE, public_names()), (PAGE, MODULES, modules())):
        written = page.read_text(encoding="utf-8")
        found = pattern.search(written)
        assert found is not None
        page.write_text(written[: found.start()] + text + written[found.end() :], encoding="utf-8")
