# Two commands on a fresh machine with Python 3.11 or later: `make demo` and `make test`.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Half of the modules are never imported: each is compiled by the first process that imports it.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt
export PYTHONDONTWRITEBYTECODE =
PYTEST := $(BIN)/pytest --numprocesses auto --dist worksteal
DEMO := build/demo

.PHONY: help demo docs wheel test test-all soak lint format clean

help:
	@echo "make demo      publish the demo survey; the last line is the bundle's path"
	@echo "make test      the tests that take a quarter of a second or less"
	@echo "make test-all  all tests, linters and types"
	@echo "make soak      half an hour of an agency in which everything fails"
	@echo "make docs      the documentation, as pages in build/site; its notebooks run on the demo"
	@echo "make wheel     the package as one file; the last line is its path"
	@echo "make format    lay out the code"
	@echo "make image     the container image of server and worker; needs docker"
	@echo "make papers    repeats the experiments of the source papers; writes their page"
	@echo "make clean     remove what the other targets made"

$(BIN)/python:
	@echo "making a virtual environment in $(VENV)" >&2
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "dprelease needs Python 3.11 or later; name one with make PYTHON=...")'
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing dprelease and the demo survey (a minute or two)" >&2
	@$(PIP) --editable ".[demo]"
	@touch $@

$(VENV)/.dev: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing dprelease with what its tests need (a minute or two)" >&2
	@$(PIP) --editable ".[accounting,demo,dev,evaluation,postgres]"
	@touch $@ $(VENV)/.demo

$(VENV)/.docs: $(VENV)/.dev
	@echo "installing what makes the site" >&2
	@$(PIP) --editable ".[docs]"
	@touch $@

$(VENV)/.all: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing also the site's, the engines, oracles and the browser's driver of the slow tests" >&2
	@$(PIP) --editable ".[accounting,demo,dev,docs,evaluation,files,postgres,slow,spark]"
	@touch $@ $(VENV)/.demo $(VENV)/.dev $(VENV)/.docs

# The demo has a home and a ledger of its own, made anew each time: its survey is public.
demo: $(VENV)/.demo
	@rm -rf $(DEMO)/ledger.sqlite $(DEMO)/published
	@mkdir -p $(DEMO)
	@DPRELEASE_HOME=$(DEMO)/home $(BIN)/dprelease run deployments/plans/fair.yaml \
	    --ledger sqlite:///$(DEMO)/ledger.sqlite --release-id demo --out $(DEMO)/published

# What an earlier build left would be packed too.
wheel: $(BIN)/python
	@rm -rf build/lib build/bdist.* build/dprelease-*.whl
	@$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir build . >&2
	@ls build/dprelease-*.whl

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

docs: demo $(VENV)/.docs
	@DPRELEASE_BUNDLE=$(DEMO)/published/fair-1978/demo NO_MKDOCS_2_WARNING=true $(BIN)/python -m mkdocs build --strict --quiet -f docs/mkdocs.yml
	@echo build/site/index.html

test: $(VENV)/.dev
	$(PYTEST) -m "not slow"

soak: $(VENV)/.all
	$(BIN)/python -m tests.soak build/soak

# One process more than there are processors, as many slow tests wait for a server or a browser.
# Linters and types run beside the tests, which leave a processor idle at their start and end.
test-all: $(VENV)/.all
	@mkdir -p build
	@$(MAKE) --no-print-directory lint > build/lint.txt 2>&1 & linters=$$!; \
	PYTEST_XDIST_AUTO_NUM_WORKERS=$$(($$(nproc) + 1)) $(PYTEST); tested=$$?; \
	wait $$linters; linted=$$?; cat build/lint.txt; exit $$((tested + linted))

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build *.egg-info

$(VENV)/.benchmarks: pyproject.toml constraints.txt | $(BIN)/python
	@echo "installing dprelease with what its benchmarks need (a minute or two)" >&2
	@$(PIP) --editable ".[benchmarks]"
	@touch $@

# The two surveys of the thesis are looked for in DPRELEASE_TEST_DATA; their sections are left out without.
.PHONY: papers
papers: $(VENV)/.benchmarks
	@OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.papers --images docs/pages/images \
	    --page docs/pages/explanation/papers.md

.PHONY: pictures
pictures: demo $(VENV)/.all
	$(BIN)/python -m docs.pictures $(DEMO)/published/fair-1978/demo docs/pages/images

$(VENV)/.image: | $(BIN)/python
	@$(PIP) "pip-tools>=7.5"
	@touch $@

# Every package of the image with its version and hashes, for this machine's platform and Python.
build/requirements.txt: pyproject.toml constraints.txt $(VENV)/.image
	@mkdir -p build
	@$(BIN)/python -m piptools compile --quiet --strip-extras --generate-hashes --allow-unsafe --extra image \
	    --constraint constraints.txt --no-emit-index-url --no-emit-trusted-host --no-emit-find-links \
	    --output-file $@ pyproject.toml

# Base images are pulled by their names, and used by the digests that these stand for today.
.PHONY: image
image: build/requirements.txt
	@digest() { docker pull --quiet "$$1" >/dev/null && docker image inspect --format '{{index .RepoDigests 0}}' "$$1"; }; \
	base=$$(digest python:$$($(BIN)/python -c 'import sys; print("%d.%d" % sys.version_info[:2])')-slim) && \
	database=$$(digest postgres:17) && \
	docker build --build-arg "BASE=$$base" --tag dprelease --file deployments/Dockerfile . && \
	printf 'BASE=%s\nPOSTGRES_IMAGE=%s\n' "$$base" "$$database" > build/images.env
