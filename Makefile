# The two front doors: `make demo` shows the whole job, `make test` checks everything. Each does its own set-up.
# TORCH chooses another torch: `make demo TORCH='torch==2.10.0'`.

PYTHON ?= python3
TORCH ?=
# How many test processes run at once; the tests of one file stay together.
JOBS ?= auto
VENV := .venv
BIN := $(VENV)/bin
# One stamp for each torch: to ask for another is to set up anew.
STAMP := $(VENV)/.ready-$(subst /,_,$(or $(TORCH),pinned))

# Compiled modules make the commands start in half the time; some machines turn them off.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help setup demo test lint types imports check format clean

help:
	@echo "make demo    the main job on real input, narrated: registry, signed plugins, install, verify, run, refusals"
	@echo "make test    ruff, mypy --strict, import-linter, pytest"
	@echo "make setup   the virtual environment in $(VENV), with all extras and pinned versions"
	@echo "make clean   remove the virtual environment and what the demo left"

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt deploy/setup.sh
	@PYTHON="$(PYTHON)" VENV="$(VENV)" TORCH="$(TORCH)" sh deploy/setup.sh
	@rm -f $(VENV)/.ready-*
	@touch '$(STAMP)'

demo: setup
	@$(BIN)/python -m demo

test: setup check

check: lint types imports
	$(BIN)/pytest -q -n $(JOBS) --dist loadfile --no-loadscope-reorder

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types:
	$(BIN)/mypy

imports:
	$(BIN)/lint-imports

format:
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) .demo .tour dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
