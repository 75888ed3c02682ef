# make demo   sets everything up and shows the library learning from real text
# make test   sets everything up and runs the tests
PYTHON ?= python3
VENV   := .venv
RUN    := $(VENV)/bin/python
SOURCES := $(shell find sparsemargin -name '*.py' -o -name '*.pyx' -o -name '*.pxd' -o -name '*.pyi') setup.py pyproject.toml

.PHONY: demo test bench table6 lint clean

demo: $(VENV)/installed
	$(RUN) examples/demo.py

test: $(VENV)/installed
	$(VENV)/bin/pytest

bench: $(VENV)/installed
	$(RUN) benchmarks/epoch.py

table6: $(VENV)/installed
	$(RUN) benchmarks/alma_table6.py

lint: $(VENV)/installed
	$(VENV)/bin/pip install -q ruff mypy
	$(VENV)/bin/ruff check . && $(VENV)/bin/ruff format --check . && $(VENV)/bin/mypy

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)
	$(VENV)/bin/python -m pip install -q --upgrade pip

# A regular install, not an editable one: what is tested is what users get.
$(VENV)/installed: $(VENV)/bin/python $(SOURCES)
	$(VENV)/bin/python -m pip install ".[plot,test]"
	@touch $@

clean:
	rm -rf $(VENV) build *.egg-info
	find sparsemargin -name '*.so' -o -name '*.c' -path '*/_engine/*' | xargs rm -f
