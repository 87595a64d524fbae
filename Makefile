# People and CI run the same commands. Nothing is needed but Python 3.11 to 3.14 (with venv) and make.
VENV ?= .venv
BIN := $(VENV)/bin
# Two for each core (tests/conftest.py).
WORKERS ?= auto
PYTEST_ARGS ?= -n $(WORKERS) --dist worksteal
SECONDS ?= 60
TARGETS ?=
# Hundreds of interpreters start in the tests: without a cache each compiles the project again, and each worker every test.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help venv demo test test-full web lint types format bench fuzz fuzz-keep lock deb docs audit release clean
help:
	@echo "make demo          the main job, on this machine, with virtual devices (AUTO=1: without a person; TOKENS=1: then a token)"
	@echo "make test          every behaviour once, in about five minutes (HWI=/path/to/HWI: with another one than the locked)"
	@echo "make test-full     everything, on every supported Python that is found, in about a quarter of an hour"
	@echo "make web           the client for web pages, in web/dist; needs Node.js 20 and npm"
	@echo "make lint          ruff, mypy, import contracts"
	@echo "make types         mypy once more, for macOS; the device library for Windows, too"
	@echo "make format        ruff's fixes and layout"
	@echo "make bench         the figures of docs/understand/performance.md; takes minutes"
	@echo "make fuzz          every parser of untrusted input, fuzzed for SECONDS=60 each (TARGETS=\"psbt tokens\")"
	@echo "make fuzz-keep     fold what was found into fuzz/corpus/"
	@echo "make docs          the documents as a site, in site/: open site/index.html, it needs no network"
	@echo "make lock          resolve every dependency again into lock/"
	@echo "make deb           a Debian package for this release of Debian, into dist/"
	@echo "make audit         known weaknesses of what is locked; asks PyPI's database over the network (RELEASE=1: strictly)"
	@echo "make release       wheel, sdist, Debian package, SBOMs and SHA256SUMS, into dist/"
	@echo "make clean         remove .venv and state/"

venv: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml lock/dev.txt lock/build.txt lock/hwi.txt $(wildcard lock/ctypes/*.txt) lock/uv.txt tools/bootstrap tools/install
	@sh tools/bootstrap $(VENV)

# Ctrl-C is the demo's to handle: the shell waits for it (a shell without a trap dies first), and make has nothing to report.
demo: venv
	@trap : INT; $(BIN)/python -m signerd demo $(if $(AUTO),--auto,) $(if $(TOKENS),--tokens,) || [ $$? -eq 130 ]

test: venv
	$(if $(HWI),PYTHONPATH=$(HWI)) $(BIN)/python -m pytest $(PYTEST_ARGS) $(TESTS)

# With the second database and the second browser, storms, kills, many examples, containers and packages; of the
# other interpreters what may differ, unless TESTS names a part.
test-full: venv
	TEST_FULL=1 $(MAKE) test
	$(if $(TESTS),,VENV=$(VENV) tools/interpreters)

web: web/dist/index.js

web/dist/index.js: web/node_modules/.package-lock.json web/tsconfig.json $(wildcard web/src/*.ts)
	@cd web && npm run --silent build && touch dist/index.js

web/node_modules/.package-lock.json: web/package.json web/package-lock.json
	@cd web && npm ci --silent --prefer-offline --ignore-scripts --no-audit --no-fund && touch node_modules/.package-lock.json

lint: venv
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# What was not run on macOS or Windows is at least typed for it.
types: venv
	$(BIN)/mypy --platform win32 --no-warn-unreachable --cache-dir .mypy_cache/win32 firmware_bridge
	$(BIN)/mypy --platform darwin --no-warn-unreachable --cache-dir .mypy_cache/darwin signerd firmware_bridge

format: venv
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

bench: venv
	$(BIN)/python -m benchmarks

fuzz: $(VENV)/.fuzz
	$(BIN)/python -m fuzz run --seconds $(SECONDS) $(TARGETS)

# Fold what was found into fuzz/corpus/, to be committed.
fuzz-keep: $(VENV)/.fuzz
	$(BIN)/python -m fuzz keep $(TARGETS)

# The fuzzer is no part of the environment that tests run in; nothing else asks for it.
$(VENV)/.fuzz: $(VENV)/.installed lock/fuzz.txt
	$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --only-binary :all: -r lock/fuzz.txt
	@touch $@

lock: venv
	UV=$(BIN)/uv sh tools/lock

docs: $(VENV)-docs/.installed
	@NO_MKDOCS_2_WARNING=1 PYTHON=$(BIN)/python $(VENV)-docs/bin/mkdocs build --strict --quiet --clean
	@$(VENV)-docs/bin/python tools/site/check.py site
	@echo "The site is in site/: open site/index.html."

# What builds the site is no part of the environment that tests run in.
$(VENV)-docs/.installed: $(VENV)/.installed lock/docs.txt
	@$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python $(VENV)-docs
	@$(BIN)/uv pip install --quiet --python $(VENV)-docs/bin/python --require-hashes --only-binary :all: -r lock/docs.txt
	@touch $@

deb: venv
	@UV=$(BIN)/uv sh tools/deb

audit: $(VENV)-release/.installed
	@$(BIN)/python -m tools.audit $(VENV)-release/bin/pip-audit $(if $(RELEASE),--release)

release: venv $(VENV)-release/.installed
	@UV=$(BIN)/uv RELEASE=$(VENV)-release/bin sh tools/release

# What checks a release is no part of the environment that tests run in.
$(VENV)-release/.installed: $(VENV)/.installed lock/release.txt
	@$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python $(VENV)-release
	@$(BIN)/uv pip install --quiet --python $(VENV)-release/bin/python --require-hashes --only-binary :all: -r lock/release.txt
	@touch $@

clean:
	rm -rf $(VENV) $(VENV)-release $(VENV)-docs state dist site web/dist web/node_modules
