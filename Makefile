# Three commands do everything on a fresh machine: `make demo`, `make watch` and `make test`. All create .venv themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.PHONY: demo watch test lint format bench results pictures docs clean
.DELETE_ON_ERROR:

demo: $(VENV)/.core
	@echo "Training, replay and report: about a minute on two free cores."
	@if [ -f out/demo/run/config.json ]; then $(BIN)/ncap train --resume out/demo/run; \
	else $(BIN)/ncap train flat-walk --seed 2 --epochs 20 --out out/demo/run; fi
	$(BIN)/ncap replay out/demo/run --out out/demo/walk.html
	$(BIN)/ncap report out/demo/run --out out/demo/report.html
	@echo "Open out/demo/walk.html and out/demo/report.html in a browser. Drive the robot yourself: make watch"

watch: $(VENV)/.view
	@$(BIN)/ncap watch --open || [ $$? -eq 130 ]

test: $(VENV)/.all lint
	$(BIN)/pytest -n 2 --dist worksteal

lint: $(VENV)/.all
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.all
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Figures and tables of the results from the CSV files in docs/results, without any training.
results: $(VENV)/.all
	$(BIN)/ncap reproduce all --draw --out docs/results
	$(BIN)/python docs/tables.py

# Screenshots and animations of the pages; screenshots need Chromium.
pictures: $(VENV)/.all
	$(BIN)/python docs/pictures.py

bench: $(VENV)/.all
	$(BIN)/python -m benchmarks

docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Open out/site/index.html. To search in it: $(BIN)/python -m http.server --directory out/site, http://localhost:8000"

clean:
	rm -rf $(VENV) out build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

# A stamp is newer than what it was made from, so that a second call installs nothing.
$(VENV)/.core: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --quiet --constraint constraints.txt --editable .
	@touch $@

$(VENV)/.docs $(VENV)/.view: $(VENV)/.%: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --quiet --constraint constraints.txt --editable '.[$*]'
	@touch $@ $(VENV)/.core

$(VENV)/.all: pyproject.toml constraints.txt | $(BIN)/python
	$(PIP) install --quiet --constraint constraints.txt --editable '.[cluster,dev,docs,go2,onnx,rl,video,view]'
	@touch $@ $(VENV)/.core $(VENV)/.docs $(VENV)/.view

$(BIN)/python:
	@command -v $(PYTHON) >/dev/null 2>&1 || { echo "ncap needs Python 3.11 or newer, and there is no '$(PYTHON)' here: install it, or say PYTHON=/path/to/python3." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "ncap needs Python 3.11 or newer; '$(PYTHON)' is $$($(PYTHON) -V 2>&1). Say PYTHON=/path/to/a/newer/python3." >&2; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); echo "'$(PYTHON) -m venv' failed: on Debian and Ubuntu install python3-venv." >&2; exit 1; }
