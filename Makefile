# `make` alone tells what there is. Every target first sets up what is missing.
.DEFAULT_GOAL := help
SHELL := /bin/bash
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
KERNELS := $(VENV)/.kernels

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-19s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: $(STAMP) $(KERNELS) ## make .venv with everything, and tell which servers are missing
	@tools/setup_system.sh

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Atoll needs Python 3.11 or newer; set PYTHON=")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	test -x $(BIN)/uv || $(BIN)/python -m pip install -q --require-hashes --no-deps -r <(sed -n '/^uv==/,/[^\\]$$/p' constraints.txt)
	$(BIN)/uv pip install -q --python $(BIN)/python --require-hashes -r constraints.txt
	$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $@

# Compiled once here, not by the first leader or test that needs them. All anew: numba compares
# a kernel with the date of its own file only, not with those of the kernels that it calls.
$(KERNELS): $(STAMP) $(shell find libs/atoll/core -name '*kernels.py' -o -name columns.py)
	@find libs/atoll/core -name '*.nb[ci]' -delete
	@echo "compiling the scheduler's kernels, a minute or two"
	@$(BIN)/python -m atoll.core.engine.kernels
	@touch $@

.PHONY: lock
lock: $(STAMP) ## resolve the dependencies again into constraints.txt
	$(BIN)/uv pip compile -q --upgrade --extra all --extra container --extra dev --universal --python-version 3.11 \
		--generate-hashes --no-annotate --no-header --no-emit-index-url --no-emit-find-links \
		-o constraints.txt pyproject.toml
	BIN=$(BIN) tools/image_lock.sh

.PHONY: demo
demo: setup ## run the whole control plane here and show a job's way through it
	$(BIN)/python -m tools.demo

.PHONY: demo-burst
demo-burst: setup ## rent machines here for a load that outgrows its cluster, in three short days
	$(BIN)/python -m tools.demo_burst

.PHONY: up
up: setup ## run the control plane until Ctrl-C
	$(BIN)/atoll up --foreground

# Files stay whole on one worker, so that what a module starts is started once.
WORKERS ?= 2

.PHONY: test
test: setup ## run every test
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

.PHONY: test-compose
test-compose: setup ## build the images and run them with docker compose
	$(BIN)/python -m tools.test_compose

.PHONY: bench
bench: setup ## measure the hot paths
	$(BIN)/python -m tools.bench

.PHONY: bench-core
bench-core: setup ## measure the core alone, with 1,000 to 100,000 nodes
	@$(BIN)/python -m tools.bench_core

.PHONY: bench-blocked
bench-blocked: setup ## measure what blocked gangs cost a cycle
	@$(BIN)/python -m tools.bench_blocked

.PHONY: bench-burst
bench-burst: setup ## measure how long the broker thinks, and how it follows demand
	@$(BIN)/python -m tools.bench_burst

.PHONY: bench-reservations
bench-reservations: setup ## measure bookings: to make, find and read them, and what a cycle pays
	@$(BIN)/python -m tools.bench_reservations

.PHONY: mutants
mutants: setup ## remove guards one at a time, and see that the tests notice
	$(BIN)/python -m tools.mutants

DOCKERFILES = $(shell find deploy -name '*Dockerfile*' -not -name '*.dockerignore' 2>/dev/null)
COMPOSE_FILES = $(wildcard docker-compose*.yml) $(shell find deploy -name '*compose*.yaml' 2>/dev/null)
MANIFESTS = $(shell find deploy/k8s -name '*.yaml' -not -name kustomization.yaml 2>/dev/null)

LINTS := lint-code lint-layout lint-types lint-imports lint-protos lint-deploy

.PHONY: lint
lint: $(STAMP) ## check everything; goes on after a failure, and fails in the end
	@$(MAKE) --keep-going $(LINTS)

.PHONY: lint-code
lint-code: $(STAMP) ## ruff: rules and format
	$(BIN)/ruff check
	$(BIN)/ruff format --check

.PHONY: lint-layout
lint-layout: $(STAMP) ## where packages are, how long files are
	$(BIN)/python tools/lint_layout.py

.PHONY: lint-types
lint-types: $(STAMP) ## mypy --strict
	$(BIN)/mypy

.PHONY: lint-imports
lint-imports: $(STAMP) ## who may import whom
	$(BIN)/lint-imports --no-logo

.PHONY: lint-protos
lint-protos: $(STAMP) ## buf lint, no breaking change, generated code is current
	$(BIN)/buf lint
	$(BIN)/buf breaking protos --against protos/baseline.binpb
	$(BIN)/python tools/gen_protos.py --check

.PHONY: lint-deploy
lint-deploy: $(STAMP) ## Dockerfiles, compose files, Kubernetes manifests, alert rules
	$(if $(DOCKERFILES),$(BIN)/hadolint --no-color --ignore DL3008 $(DOCKERFILES))
	$(if $(strip $(COMPOSE_FILES)),$(BIN)/compose-lint check $(COMPOSE_FILES))
	$(if $(MANIFESTS),$(BIN)/kubernetes-validate --strict --quiet $(MANIFESTS))
	$(BIN)/python -m tools.lint_rules

.PHONY: format
format: $(STAMP) ## let ruff fix and format what it can
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

.PHONY: protos
protos: $(STAMP) ## generate the code of every proto file again
	$(BIN)/python tools/gen_protos.py

.PHONY: baseline
baseline: $(STAMP) ## at a release: later changes must not break the API as it is now
	$(BIN)/buf build protos --exclude-source-info -o protos/baseline.binpb
