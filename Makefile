# Two commands do everything, set-up included: `make study` and `make test`.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
READY := $(VENV)/.ready
NATIVE := src/closerlook/geometry/native
LIBRARY := $(NATIVE)/kernels.so
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: study test test-slow lint format docs benchmark clean

study: $(LIBRARY)  ## run the default study on the embedded encoder and tasks; it ends with the path of its page
	$(BIN)/closerlook study default --out study

test: lint  ## every check but the slow tests; the page is tried in Chromium where that is found
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || \
		echo "Chromium is not found: the tests of the page in a browser are skipped"
	$(BIN)/python -m pytest -n auto -m "not slow"

test-slow: $(LIBRARY)  ## the slow tests
	$(BIN)/python -m pytest -m slow

lint: $(LIBRARY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(LIBRARY)  ## the documentation as a site in site/, which opens from disk; a warning is an error
	$(BIN)/python -m sphinx --builder html --fresh-env --fail-on-warning --keep-going --quiet docs site
	@echo site/index.html

benchmark: $(LIBRARY)  ## speed and memory, as ratios against a peer in the same run
	$(BIN)/python benchmarks/extraction.py

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit('Python 3.11 or newer is needed, this is ' + sys.version.split()[0] if sys.version_info < (3, 11) else 0)"
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(PIP) hatchling
	$(PIP) $$($(BIN)/python -c "import hatchling.build as b; print(*b.get_requires_for_build_editable())")  # a C compiler too, where there is none
	$(PIP) --no-build-isolation -e ".[dev]"  # the build's own tools are pinned as well
	touch $(READY)

$(LIBRARY): hatch_build.py $(wildcard $(NATIVE)/*.[ch]) | $(READY)
	$(BIN)/python hatch_build.py

clean:
	rm -rf $(VENV) study site $(LIBRARY)
