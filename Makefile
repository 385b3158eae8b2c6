# fleetbrain: the commands of the project. `make help` lists them.
SHELL := /bin/bash
.DELETE_ON_ERROR:
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/setup-complete

.PHONY: help setup demo test nats-cluster test-chart kubernetes engines engines-test engines-slow check bench protos release-protos lock clean

help: ## List the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

setup: $(STAMP) protos/gen/brain/v1/page_pb2.py ## Make .venv with the locked dependencies and the generated protobuf code

$(STAMP): requirements/dev.txt pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "python3 (3.11 or newer, with venv) is needed; on Debian: apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	@echo "Setting up .venv (once, about a minute)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --progress-bar off --require-hashes --only-binary :all: -r requirements/dev.txt
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation --editable .
	@touch $@

# Installed anew, for the installation holds a copy of the generated code.
protos/gen/brain/v1/page_pb2.py: $(wildcard protos/brain/v1/*.proto) protos/compile.py | $(STAMP)
	@$(BIN)/python protos/compile.py
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation --editable .

protos: setup ## Generate the protobuf code anew
	$(BIN)/python protos/compile.py
	$(BIN)/python -m pip install --disable-pip-version-check --quiet --no-deps --no-build-isolation --editable .

demo: setup ## Import the demo vault into a throw-away brain and ask it a dozen questions
	@$(BIN)/python -m gateway.cli.demo

test: check ## Everything that must hold: check, then all tests on the embedded engines
	$(BIN)/python -m pytest -n 2 --dist worksteal --ignore tests/integration/nats_cluster tests

# Not among the tests that must pass: two of its eleven fail now and then, as elections take as long as they take.
nats-cluster: setup ## Three NATS servers that die, freeze, fill up and come back under writers
	$(BIN)/python -m pytest tests/integration/nats_cluster

check: setup ## Style, strict types, import rules, protobuf lint and compatibility, corpus
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/buf lint protos
	$(BIN)/buf breaking protos --against protos/released.binpb
	$(BIN)/python tests/corpora/check_demo.py
	$(BIN)/python tests/check_modules.py

.venv/chart-complete: requirements/chart.txt $(STAMP)
	@$(BIN)/python -m pip install --disable-pip-version-check --quiet --progress-bar off --require-hashes --only-binary :all: -r requirements/chart.txt
	@touch $@

test-chart: setup .venv/chart-complete ## The Helm chart: lint, values schema, rendered objects against three Kubernetes versions, policies
	$(BIN)/python -m pytest tests/chart

# Not among the tests that must pass until a whole run of it has been seen green.
kubernetes: setup ## The chart on a real Kubernetes: fake nodes, then one real node with our own image (root, Go; 15 minutes the first time)
	tests/kubernetes/run

engines: setup ## Fetch the servers that engines-test starts (Neo4j, OpenSearch), once; needs a JDK and Maven
	@$(BIN)/python -m tests.engines.fetch

# A test that hangs fails by its own clock, which includes the start of the server that it is the first to need.
ON_ENGINES := $(BIN)/python -m pytest --engines cluster --timeout 300 --durations 8
# Fails now and then: a commit becomes visible record by record (see what engines-test prints at its end).
NOT_YET_STABLE := tests/contract/graph/neo4j/test_shared_store.py::test_reads_beside_a_writer_never_show_half_a_batch

engines-test: engines ## The contract tests and an agent's on real servers, started here or named by FLEETBRAIN_TEST_*_URL
	$(ON_ENGINES) $(addprefix --deselect ,$(NOT_YET_STABLE)) tests/contract/graph tests/contract/search tests/e2e/test_brain.py

engines-slow: engines ## What engines-test leaves out, as it does not hold in every run yet (Neo4j: reads beside a writer)
	$(ON_ENGINES) $(NOT_YET_STABLE)

bench: setup ## Print the figures of README's table
	$(BIN)/python -m tests.bench

release-protos: setup ## Renew the image that `buf breaking` compares with; do it when a release is cut
	$(BIN)/buf build protos -o protos/released.binpb

lock: setup ## Resolve the dependencies anew, with hashes and without addresses of a registry
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 --generate-hashes --no-header --upgrade --quiet -o requirements/dev.txt
	$(BIN)/uv pip compile pyproject.toml --extra cluster --extra models --universal --python-version 3.11 --generate-hashes --no-header --constraint requirements/dev.txt --quiet -o requirements/base.txt

clean: ## Remove everything that setup and the tests made
	rm -rf .venv protos/gen .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis
