# People and CI run the same commands. Nothing is needed but Python 3.11 or 3.12 (with venv) and make.
VENV ?= .venv
BIN := $(VENV)/bin
PYTEST_ARGS ?= -n auto

.PHONY: help venv demo test lint format bench docs lock clean
help:
	@echo "make demo          the main job, on this machine, with virtual devices (AUTO=1: without a person)"
	@echo "make test          the whole suite"
	@echo "make lint          ruff, mypy, import contracts"
	@echo "make bench         the figures of docs/performance.md"

venv: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml lock/dev.txt lock/build.txt lock/uv.txt tools/bootstrap
	@sh tools/bootstrap $(VENV)

demo: venv
	@$(BIN)/python -m signerd demo $(if $(AUTO),--auto,)

test: venv
	$(BIN)/python -m pytest $(PYTEST_ARGS)

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: venv
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

bench: venv
	$(BIN)/python -m benchmarks

lock: venv
	UV=$(BIN)/uv sh tools/lock

clean:
	rm -rf $(VENV) state
