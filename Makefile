# Everything goes through .venv, which scripts/setup makes from the lock files in requirements/.
# Needs a POSIX sh, make, python3 (3.10 or newer) and a C++ compiler; what is missing is named with what brings it.
.POSIX:
.PHONY: help setup demo test run lint format types proto proto-check lock bench clean

# More arguments for the command of a target.
ARGS =
BIN = .venv/bin
SOURCES = edge tests scripts

help:
	@echo 'make demo         set up, then store and recall a conversation of 84 days'
	@echo 'make test         set up, then run the whole test suite (ARGS="-k name" narrows it)'
	@echo 'make run          set up, then a box on the default data directory (ARGS="--data D")'
	@echo 'make setup        only the set-up: .venv, locked dependencies, the default model'
	@echo 'make lint         ruff: rules and formatting'
	@echo 'make format       ruff: put formatting right'
	@echo 'make types        mypy, strict'
	@echo 'make proto        generate edge/v1 from proto/'
	@echo 'make proto-check  fail if edge/v1 is not what proto/ generates'
	@echo 'make lock         write requirements/*.txt anew (ARGS=--upgrade for newer versions)'
	@echo 'make bench        the headline figures, each beside its ceiling (ARGS="recall" for one)'
	@echo 'make clean        remove .venv and everything generated'

setup:
	@scripts/setup

demo: setup
	$(BIN)/edge demo $(ARGS)

# Two at a time (ARGS="-n 0" for one): much of a test is waiting. Hundreds of boxes and commands start: without the
# files that Python compiles to, each would compile the package anew.
test: setup
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 --dist worksteal $(ARGS)

run: setup
	$(BIN)/edge serve $(ARGS)

lint: setup
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)

format: setup
	$(BIN)/ruff check --fix $(SOURCES)
	$(BIN)/ruff format $(SOURCES)

types: setup
	$(BIN)/mypy

proto: setup
	scripts/proto

proto-check: setup
	scripts/proto --check

lock:
	scripts/lock $(ARGS)

bench: setup
	scripts/bench $(ARGS)

clean:
	rm -rf .venv build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find edge tests scripts -name __pycache__ -exec rm -rf {} +
