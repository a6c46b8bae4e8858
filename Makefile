# Mneme's tasks. `make` lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.setup-done

# Where the exported embedding model is kept; shared by the demo, the tests and `make serve`.
export MNEME_MODEL_DIR ?= $(CURDIR)/.cache/models

# What buf compares the API with: the main branch of the origin, else the local one.
MAIN := $(shell git rev-parse --verify --quiet origin/main 2>/dev/null || git rev-parse --verify --quiet main 2>/dev/null)

.DEFAULT_GOAL := help
.PHONY: help setup model demo picture serve test lint lint-python lint-proto breaking \
	generate check-generate format bench clean

help: ## List the tasks
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(SETUP) model ## Create .venv and prepare the embedding model; seconds when nothing changed

$(SETUP): pyproject.toml
	@command -v $(PYTHON) >/dev/null \
		|| { echo "$(PYTHON) is missing: apt install python3 python3-venv"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Mneme needs Python 3.11 or newer: make setup PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
		|| { echo "Python's venv module is missing: apt install python3-venv"; exit 1; }
	@echo "Installing into $(VENV); the first time takes a few minutes."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[server,mcp,dev]'
	@touch $@

model: $(SETUP)
	@$(BIN)/python -m mneme_server.embedding.export --model-dir "$(MNEME_MODEL_DIR)"

demo: setup ## Show what Mneme does, in a temporary folder
	@$(BIN)/python scripts/demo.py

picture: setup ## Write docs/demo.svg, the picture in the README, anew
	@$(BIN)/python scripts/demo.py --svg docs/demo.svg

serve: setup ## Serve on 127.0.0.1:50051 without keys, data in ./mneme-data
	MNEME_AUTH=disabled $(BIN)/mneme-server serve

test: setup ## Run every test
	$(BIN)/python -m pytest

lint: lint-python lint-proto ## Check style, types, the rule of dependencies and the API

lint-python: $(SETUP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	MYPYPATH=scripts $(BIN)/mypy scripts/demo.py scripts/reference.py scripts/parity.py
	$(BIN)/lint-imports

lint-proto: $(SETUP) breaking check-generate
	$(BIN)/buf lint
	$(BIN)/buf format --diff --exit-code proto

# Compared with what is committed, so that a change to a released API shows before it is merged.
breaking: $(SETUP)
	@if [ -z "$(MAIN)" ] || ! git cat-file -e $(MAIN):proto 2>/dev/null; then \
		echo "buf breaking: skipped, there is no main branch with an API to compare with"; \
	else \
		before=$$(mktemp -d) && trap 'rm -rf "$$before"' EXIT && \
		git archive $(MAIN) buf.yaml proto third_party | tar -x -C "$$before" && \
		echo "$(BIN)/buf breaking --against main ($$(git rev-parse --short $(MAIN)))" && \
		$(BIN)/buf breaking --against "$$before"; \
	fi

generate: $(SETUP) ## Generate the Python code of the API, and the tables of the documentation
	$(BIN)/python scripts/generate.py
	$(BIN)/python scripts/reference.py
	$(BIN)/python scripts/parity.py

check-generate: $(SETUP) ## Check that what is generated is up to date
	@$(BIN)/python scripts/reference.py --check
	@$(BIN)/python scripts/parity.py --check
	@fresh=$$(mktemp -d) && trap 'rm -rf "$$fresh"' EXIT && \
	$(BIN)/python scripts/generate.py "$$fresh" && \
	for package in mneme/v1 mneme/_generated buf; do \
		diff -r -x __pycache__ clients/python/$$package "$$fresh"/$$package \
			|| { echo "clients/python/$$package is not what proto/ gives: make generate"; exit 1; }; \
	done && echo "generated code is up to date"

format: $(SETUP) ## Format Python and proto files
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format
	$(BIN)/buf format -w proto

bench: setup ## Measure, print the table and write benchmarks/RESULTS.md
	$(BIN)/python -m benchmarks

clean: ## Remove .venv, the exported model and what tools cached
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
