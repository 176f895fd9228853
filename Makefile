# Needs Python 3.11 or newer, make and a package index. Everything else goes into .venv.

VENV := .venv
BIN := $(VENV)/bin

# The first of these that is new enough; `make demo PYTHON=python3.12` chooses another.
PYTHON ?= $(shell for candidate in python3 python3.13 python3.12 python3.11; do \
	$$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& { echo $$candidate; break; }; done)

# Wheels only and hashes for all: installing runs no code of a package.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PIP_LOCKED := $(PIP_INSTALL) --no-deps --only-binary :all: --require-hashes

LOCK = $(BIN)/uv pip compile pyproject.toml --quiet --universal --generate-hashes $(UPGRADE) \
	--no-annotate --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock'

# Each stamp is written last, so that what was interrupted is done again.
CREATED := $(VENV)/.created
RUNTIME := $(VENV)/.runtime
DEV := $(VENV)/.dev

.DEFAULT_GOAL := help
# What `make drill` does more or less of, such as DRILL="--seed 7 --runs 300".
DRILL ?=
.PHONY: help demo drill up test check mutants bench screenshot lock clean

help: ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-12s%s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(RUNTIME) ## play the story of order 8890, with its kills, and check the books
	$(BIN)/refund demo

drill: $(RUNTIME) ## break everything on real processes, and check the books (6 minutes)
	$(BIN)/refund drill $(DRILL)

up: $(RUNTIME) ## run Temporal, the company and a worker until Ctrl-C; data stays in .northwind/
	$(BIN)/refund up

test: check ## set everything up, check the code and run all tests
	$(BIN)/python -m pytest --numprocesses auto --dist loadfile --no-loadscope-reorder

check: $(DEV) ## format, lint, types (strict), import contracts, patches and sets; changes nothing
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.patch_lint
	$(BIN)/python -m tests.set_lint

mutants: $(DEV) ## break every safeguard in a copy, and see that a test misses it
	$(BIN)/python -m tests.mutants

bench: $(DEV) ## measure and print the times that the documentation speaks of
	$(BIN)/python -m tests.bench

screenshot: $(DEV) ## take the README's picture of a run in the Web UI (needs Chromium)
	$(BIN)/python -m tests.screenshot

lock: $(DEV) ## pin what pyproject.toml asks for; UPGRADE=--upgrade takes the newest
	$(LOCK) --group build --output-file requirements.lock
	$(LOCK) --group dev --constraint requirements.lock --output-file requirements-dev.lock

clean: ## remove the environment and all caches; .northwind/ stays
	rm -rf $(VENV) build dist .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(CREATED):
	@test -n "$(PYTHON)" || { echo "No Python 3.11 or newer found." \
		"Install one, or name it: make demo PYTHON=/path/to/python3" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "$(PYTHON) does not run or is older than Python 3.11." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
		{ echo "$(PYTHON) has no venv module; on Debian and Ubuntu: apt install python3-venv" >&2; \
		exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(RUNTIME): requirements.lock pyproject.toml $(CREATED)
	@echo "Installing into $(VENV), once: about a minute"
	$(PIP_LOCKED) --requirement requirements.lock
	$(PIP_INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV): requirements-dev.lock $(RUNTIME)
	$(PIP_LOCKED) --requirement requirements-dev.lock
	@touch $@
