# Two commands do everything, set-up included: `make study` and `make test`.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
NATIVE := src/closerlook/geometry/native
LIBRARY := $(NATIVE)/kernels.so
# --no-compile: Python writes bytecode at the first import, only for modules that are used; this halves the set-up time.
# So a shell that forbids bytecode must not hand that on: every process would compile torch again.
PIP = $(BIN)/python -m pip install --quiet --no-compile --disable-pip-version-check -c constraints.txt
unexport PYTHONDONTWRITEBYTECODE

# Stamp files. $(READY): .venv has what a study needs; $(READY)-test: also the extra `test`; and so on for each extra.
READY := $(VENV)/.ready

.PHONY: study test test-slow test-portable test-sanitized test-faults fuzz lint format docs write-up paper package wheels benchmark hooks clean

study: $(LIBRARY)  ## run the default study on the built-in encoder and tasks; prints the path of the report page at the end
	$(BIN)/closerlook study default --out study

test: lint $(READY)-test  ## all checks except the slow tests; tests of the page in a browser need Chromium
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
		echo "Chromium not found: tests of the report page in a browser are skipped"
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow and not portable" --cov --cov-report=term:skip-covered

test-slow: $(LIBRARY) $(READY)-test $(READY)-docs $(READY)-paper  ## the slow tests
	$(BIN)/python -m pytest -m slow

test-portable: $(LIBRARY) $(READY)-test  ## the numerical tests with the instructions of other processors; not part of `make test`
	$(BIN)/python -m tests.portable

test-sanitized: $(LIBRARY) $(READY)-test  ## the engine under gcc's sanitizers; QUICK=--quick runs a selection
	$(BIN)/python -m tests.sanitized $(QUICK)

MINUTES ?= 30
test-faults: $(LIBRARY) $(READY)-test  ## every operation of a small study fails once; then random kills for MINUTES=30 minutes
	$(BIN)/python -m pytest tests/faults tests/study/test_damaged.py
	$(BIN)/python -m tests.faults.soak --minutes $(MINUTES)

N ?= 100000
fuzz: $(LIBRARY) $(READY)-test  ## mutated files for every reader, N of them; `make test` tries 2,000
	FUZZ_INPUTS=$(N) $(BIN)/python -m pytest -n auto --dist worksteal tests/fuzz

lint: $(LIBRARY) $(READY)-lint  ## ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)-lint  ## let ruff correct what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(LIBRARY) $(READY)-docs  ## the documentation as a site in site/, readable without a server; a warning is an error
	$(BIN)/python -m sphinx --builder html --fresh-env --fail-on-warning --keep-going --quiet docs site
	@echo site/index.html

write-up: $(LIBRARY)  ## docs/reproduction.md, its appendix, docs/lora-and-forgetting.md, docs/held-out.md, docs/paper/note.md and their figures, from the tables in docs/results*
	$(BIN)/python docs/write_up.py

paper: $(READY)-paper  ## docs/paper/note.pdf from docs/paper/note.md
	$(BIN)/python docs/print_note.py

package: $(READY)  ## the source archive and the wheel for this platform, in dist/
	$(BIN)/python -m hatchling build

wheels: $(READY)-wheels  ## the source archive and a wheel for each platform, in dist/, checked
	$(BIN)/python hatch_build.py wheels
	$(BIN)/twine check --strict dist/*

benchmark: $(LIBRARY) $(READY)-bench  ## speed and memory, as ratios to a reference measured in the same run
	$(BIN)/python benchmarks/extraction.py

hooks: $(READY)-lint  ## run ruff and mypy before every commit
	$(BIN)/pre-commit install

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit('Python 3.11 or newer is needed, this is ' + sys.version.split()[0] if sys.version_info < (3, 11) else 0)"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) hatchling
	$(PIP) $$($(BIN)/python -c "import hatchling.build as b; print(*b.get_requires_for_build_editable())")  # includes a C compiler if the machine has none
	$(PIP) --no-build-isolation -e .  # without isolation, constraints.txt pins the build tools too
	touch $@

$(READY)-%: $(READY)
	$(PIP) --no-build-isolation -e ".[$*]"
	touch $@

$(LIBRARY): hatch_build.py $(wildcard $(NATIVE)/*.[ch]) | $(READY)
	$(BIN)/python hatch_build.py

clean:
	rm -rf $(VENV) study site dist $(LIBRARY)
