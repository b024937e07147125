.DEFAULT_GOAL := help
SHELL := /bin/sh
PY := .venv/bin/python
MINUTES ?= 10
KILLS ?= 20
ON ?=
WORKERS ?= 2

.PHONY: help base setup demo test check bench soak beside kills lock clean

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | awk -F'|' '{printf "%-14s %s\n", $$1, $$2}'

base:
	@python=$$(tools/preflight.sh) && PYTHON="$$python" $(MAKE) --no-print-directory --silent .venv/.connectors

setup: base  ## make .venv from the lock file and fetch the Spark connectors and the servers of the tests, once
	@tools/postgres.sh
	@tools/maven.sh
	@$(PY) -m backcast.testing.registry

.venv/.locked: requirements.lock tools/setup.sh tools/uv.lock
	@tools/setup.sh "$(PYTHON)"
	@touch $@

.venv/.installed: .venv/.locked pyproject.toml
	@.tools/uv/bin/uv pip install --quiet --python $(PY) --no-config --no-deps --no-build-isolation --editable .
	@touch $@

.venv/.connectors: .venv/.installed src/backcast/spark/versions.py
	@$(PY) -m backcast.spark.packages
	@touch $@

demo: base  ## restate a table beside a live writer and take it back; restate a day of a stream while it runs
	@$(PY) -m backcast.demo

test: setup  ## run every test
	@tools/tests.sh $(PY) $(WORKERS)

check: setup  ## lint, types, layers and the fast tests
	@.venv/bin/ruff check --output-format=concise .
	@.venv/bin/ruff format --check .
	@.venv/bin/mypy
	@.venv/bin/lint-imports --no-logo
	@.venv/bin/deptry src
	@$(PY) -m pytest -q -n $(WORKERS) tests/unit tests/architecture

bench: setup  ## measure the promises with numbers
	@$(PY) -m bench

soak: setup  ## kill it at every point, then at random, for MINUTES minutes; ON=delta or ON=iceberg: on that format only
	@$(PY) -m tests.crash.soak --minutes $(MINUTES) $(if $(ON),--on $(ON))

beside: setup  ## the same with a live stream beside restatements of its table, both killed, for MINUTES minutes on each format
	@$(PY) -m tests.crash.beside_soak --minutes $(MINUTES) $(if $(ON),--on $(ON))

kills: setup  ## kill a live stream KILLS times at random points on each format, while records arrive
	@$(PY) -m tests.crash.stream_soak --kills $(KILLS) $(if $(ON),--on $(ON))

lock: setup  ## resolve the dependencies again within the bounds of pyproject.toml
	@tools/lock.sh

clean:  ## remove everything that the other targets made
	@rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .demo .bench dist build
	@find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
