# Every target sets up what it needs: a virtual environment in .venv with everything, Java 17 if there is none,
# and for the tests a PostgreSQL server.
.DEFAULT_GOAL := help
BIN := .venv/bin

.PHONY: help setup demo test proof judge faults lint docs bench performance lock clean

help:  ## this list
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 13

setup:  ## a virtual environment in .venv, with everything
	@sh scripts/setup.sh

demo: setup  ## the main job on embedded parts, live
	@$(BIN)/penstock demo

test:  ## all tests but the long ones, on the real engine, a real broker and a real database; under 15 minutes
	@sh scripts/setup.sh tests
	@# three workers on two cores: a third of a test's time is spent waiting, for a broker, a batch, an interval
	@$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder --durations=40

proof:  ## the long tests: random kills, the second Spark, every start that the judge can ask for, benchmarks
	@sh scripts/setup.sh proof
	@$(BIN)/python -m pytest -m proof --durations=40

judge:  ## asks two Sparks whether they agree with every rule, and writes docs/agreement.md
	@sh scripts/setup.sh proof
	@$(BIN)/python -m tests.judge .judge-4.1.json --every
	@PYTHONPATH=.venv/spark-4.3 $(BIN)/python -m tests.judge .judge-4.3.json --every
	@$(BIN)/python scripts/write_agreement.py .judge-4.1.json .judge-4.3.json

faults:  ## breaks a running pipeline in every way that tests/faults knows, and writes docs/faults.md
	@sh scripts/setup.sh tests
	@PENSTOCK_WRITE_FAULTS=1 $(BIN)/python -m pytest tests/faults -m "proof or not proof"

lint: setup  ## ruff, mypy, import contracts
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-logo

docs: setup  ## writes the generated pages of docs/ anew
	@$(BIN)/python scripts/write_docs.py
	@PENSTOCK_WRITE_TUTORIAL=1 $(BIN)/python -m pytest tests/cli/test_tutorial.py

bench: setup  ## `check --fast` on 50 pipelines, then a short form of `penstock bench`; under 15 minutes
	@$(BIN)/python scripts/bench_check.py
	@$(BIN)/penstock bench stateless keyed-count drain --contenders floor,tuned,penstock --rounds 2 --seconds 8 --warm 8 --records 200000

performance:  ## measures all figures of docs/performance.md anew; an hour and a half
	@sh scripts/setup.sh proof
	@$(BIN)/python scripts/performance.py

lock: setup  ## resolves requirements.lock anew from pyproject.toml
	@$(BIN)/uv pip compile pyproject.toml --extra dev --generate-hashes --no-header --universal --python-version 3.11 --quiet -o requirements.lock

clean:  ## removes the virtual environment and all caches
	@rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis penstock-demo
