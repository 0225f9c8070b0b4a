# `make` alone tells what there is. Every target first sets up what is missing.
.DEFAULT_GOAL := help
SHELL := /bin/bash
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(STAMP) ## make .venv with everything, and tell which servers are missing
	@tools/setup_system.sh

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Atoll needs Python 3.11 or newer; set PYTHON=")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	test -x $(BIN)/uv || $(BIN)/python -m pip install -q --require-hashes --no-deps -r <(sed -n '/^uv==/,/[^\\]$$/p' constraints.txt)
	$(BIN)/uv pip sync -q --python $(BIN)/python --require-hashes constraints.txt
	$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

.PHONY: lock
lock: $(STAMP) ## resolve the dependencies again into constraints.txt
	$(BIN)/uv pip compile -q --upgrade --all-extras --universal --python-version 3.11 \
		--generate-hashes --no-annotate --no-header --no-emit-index-url --no-emit-find-links \
		-o constraints.txt pyproject.toml

.PHONY: demo
demo: setup ## run the whole control plane here and show a job's way through it
	$(BIN)/python tools/demo.py

.PHONY: up
up: setup ## run the control plane until Ctrl-C
	$(BIN)/atoll up

.PHONY: test
test: setup ## run every test
	$(BIN)/python -m pytest

.PHONY: test-compose
test-compose: setup ## build the images and run them with docker compose
	$(BIN)/python tools/test_compose.py

.PHONY: bench
bench: setup ## measure the hot paths
	$(BIN)/python tools/bench.py
