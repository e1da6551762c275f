# What one does with this project. Everything happens in .venv, which is made here, from Python 3.11+ alone.
#   make run      serve the store in ./data over HTTP, and say at which address (Ctrl-C or SIGTERM ends it in order)
#   make chat     talk to a durable session in ./data (answers the lines of its standard input when that is no terminal)
#   make test     all that a change must pass: format, lint, types, tests, doctests, examples
#   make crash    the crash suites with every kill point and the long runs
#   make outside  programs of others (openai, openai-agents, llm, hermes-agent), unchanged, with our server behind them
#   make page     the page in headless Chromium (Debian: chromium), with pictures of it left in .outside/page
#   make fuzz     each decoder fed for SECONDS (60) with what a fuzzer finds
#   make bench    the numbers that the project promises, each as a ratio to the floor of this machine; what a server costs
#   make format   bring the code into its format
#   make docs     write into docs/ which tests show each invariant, and what each file is
#   make clean    remove what was made here, stores excepted
# Another Python: make PYTHON=python3.12 run. Another store: make STORE=elsewhere run. Another port: make PORT=9000 run.

PYTHON ?= python3
STORE ?= ./data
PORT ?= 8420
WORKERS ?= 4
SECONDS ?= 60
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
PYTEST := $(BIN)/python -m pytest

.PHONY: run chat test crash outside page fuzz bench format docs clean

run: .venv/installed
	@$(BIN)/keeve serve $(STORE) --port $(PORT)

chat: .venv/installed
	@$(BIN)/keeve chat --store $(STORE)

# Programs of Python are compiled once, and not by each process that runs them: not even where one is told to keep
# nothing. What the tests are made of is compiled beside mypy, which takes one processor.
test crash outside page bench: export PYTHONDONTWRITEBYTECODE =
test: .venv/installed-dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(PYTEST) --collect-only --quiet >/dev/null & $(BIN)/mypy; code=$$?; wait; exit $$code
	$(PYTEST) -n $(WORKERS) --maxprocesses 4

crash: .venv/installed-dev
	KEEVE_CRASH=full $(PYTEST) -m crash -o faulthandler_timeout=7200 -rP -n $(WORKERS) --maxprocesses 4

outside: .venv/installed-dev
	KEEVE_OUTSIDE=all $(PYTEST) tests/outside/test_clients.py -o faulthandler_timeout=1200 -v

page: .venv/installed-dev
	KEEVE_PAGE=all $(PYTEST) tests/page -o faulthandler_timeout=1200 -v

fuzz: .venv/installed-fuzz
	$(BIN)/python -m tests.fuzz_decoders $(SECONDS)

bench: .venv/installed-dev
	$(BIN)/python -m benchmarks.core
	$(BIN)/python -m benchmarks.fibers
	$(BIN)/python -m benchmarks.proof
	$(BIN)/python -m benchmarks.server

format: .venv/installed-dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: .venv/installed-dev
	$(BIN)/python docs/fill_invariants.py
	$(BIN)/python docs/fill_rooms.py

clean:
	rm -rf .venv .outside build dist *.egg-info .pytest_cache .hypothesis .fuzz .mypy_cache .ruff_cache

# The stamps: an installation is repeated only when pyproject.toml has changed. Nothing of it reads or writes the
# standard streams of a conversation: input comes from /dev/null, what it says goes to the standard error.
.venv/made:
	@$(PYTHON) -c 'import sys; sys.exit("Keeve needs Python 3.11 or later, this is " + sys.version.split()[0] + ": name another one with make PYTHON=..." if sys.version_info < (3, 11) else 0)'
	@echo "Making .venv (the first time only) ..." >&2
	@$(PYTHON) -m venv .venv </dev/null >&2
	@touch $@

.venv/installed: pyproject.toml | .venv/made
	@echo "Installing Keeve into .venv: this takes a minute or two ..." >&2
	@$(PIP) --editable '.[server]' </dev/null >&2
	@touch $@

.venv/installed-dev: pyproject.toml | .venv/made
	@echo "Installing Keeve and its development tools into .venv: this takes a minute or two ..." >&2
	@$(PIP) 'uv>=0.9,<1' </dev/null >&2
	@UV_SYSTEM_CERTS=1 $(BIN)/uv pip install --quiet --no-config --python $(BIN)/python --editable '.[dev]' </dev/null >&2 \
	  || $(PIP) --editable '.[dev]' </dev/null >&2
	@touch .venv/installed $@

.venv/installed-fuzz: .venv/installed-dev
	@echo "Installing the fuzzer into .venv ..." >&2
	@$(PIP) --editable '.[dev,fuzz]' </dev/null >&2
	@touch $@
