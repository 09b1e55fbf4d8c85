# Each target makes the environment it needs first, so a clean clone is enough.
PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.stamp
PY := $(VENV)/bin/python
WORKERS ?= 2

# What is imported is compiled once, for all sessions: some 20 s for each worker, most of
# it type checks. All that is installed would take longer.
export PYTHONDONTWRITEBYTECODE :=

# Tests compile thousands of small programs. With these settings jax keeps every one
# of them, which makes the second run several times faster.
CACHE := JAX_COMPILATION_CACHE_DIR="$(CURDIR)/.jax_cache" \
	JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0 \
	JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES=-1
# Tests of one file stay together as long as each worker has some: they share fixtures.
PYTEST := $(CACHE) $(PY) -m pytest -q --dist worksteal
# Most of the time of the tests goes to the compiler; what they show does not depend on
# how far it goes. Slow ones of these run longer than they compile, in float32; there
# eight devices and one differ by their order of operations, which is looser without
# optimisation.
LONG := tests/validation $(addprefix tests/examples/test_,guided_designs.py lenses.py mode_converter.py)
QUICK := XLA_FLAGS="$(XLA_FLAGS) --xla_backend_optimization_level=0 \
	--xla_llvm_disable_expensive_passes=true --xla_cpu_parallel_codegen_split_count=1"
DOUBLE := $(QUICK) JAX_ENABLE_X64=1

.DEFAULT_GOAL := help
.PHONY: help demo test test-slow check bench docs lint format types stress clean \
	profile-nlsq profile-mcmc

help:
	@echo "make demo    simulate published devices, design one, write pictures"
	@echo "make test    tests: float32, float64, and both on eight devices"
	@echo "make test-slow   those that take longer: before a release, after a solver"
	@echo "make check   lint, types, test, docs and the demo at a small size"
	@echo "make bench   measure the solvers beside other codes"
	@echo "make docs    build the documentation into site/"
	@echo "make lint    style;  make format  rewrites it;  make types  type checker"
	@echo "make stress  tests that take minutes: kills, restarts, mutated files"
	@echo "make profile-nlsq, profile-mcmc   traces of a fit and of a sampler"
	@echo "make clean   remove everything that these targets made"

# The pins follow the interpreter: jax 0.10.2 is the last one for Python 3.11.
$(STAMP): pyproject.toml constraints/py311.txt constraints/py313.txt
	@python=; for candidate in $(PYTHON) python3 python3.13 python3.12 python3.11; do \
		if $$candidate -c 'import ensurepip, sys, venv; \
				sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
			python=$$candidate; break; \
		fi; \
	done; \
	if [ -z "$$python" ]; then \
		echo "physax needs Python 3.11 or newer with venv; try make PYTHON=..." >&2; \
		exit 1; \
	fi; \
	pins=$$($$python -c 'import sys; \
		print("py311" if sys.version_info < (3, 12) else "py313")'); \
	echo "Setting up $(VENV) with $$($$python --version) and constraints/$$pins.txt"; \
	set -e; \
	$$python -m venv $(VENV); \
	pip="$(PY) -m pip install -qq --disable-pip-version-check --no-compile \
		-c constraints/$$pins.txt"; \
	$$pip hatchling editables; \
	$$pip --no-build-isolation -e '.[dev,docs]'
	@touch $@

demo: $(STAMP)
	$(PY) -m examples.demo

# Both halves of the tests: $(1) is empty or --slow, $(2) what another session runs.
define sessions
	$(QUICK) $(PYTEST) $(1) -n $(WORKERS) --own-cores $(addprefix --ignore=,$(2))
	$(DOUBLE) $(PYTEST) $(1) -n $(WORKERS) --own-cores
	$(PYTEST) $(1) --devices -n $(WORKERS)
	$(DOUBLE) $(PYTEST) $(1) --devices -n $(WORKERS)
endef

test: $(STAMP)
	$(call sessions,,)

test-slow: $(STAMP)
	$(call sessions,--slow,$(LONG))
	$(PYTEST) --slow -n $(WORKERS) $(LONG)

# One after the other, also under -j, where each uses every core.
check: $(STAMP)
	$(MAKE) -j $(WORKERS) lint types docs
	$(MAKE) test
	$(PY) -m examples.demo --small

bench: $(STAMP)
	$(PY) -m benchmarks.fdtd --json benchmarks/results/fdtd.json
	$(PY) -m benchmarks.gradient --json benchmarks/results/gradient.json
	$(PY) -m benchmarks.media --json benchmarks/results/media.json
	$(PY) -m benchmarks.graph --json benchmarks/results/graph.json
	$(PY) -m benchmarks.fit --json benchmarks/results/fit.json
	$(PY) -m benchmarks.xpcs --json benchmarks/results/xpcs.json
	$(PY) -m benchmarks.particles --json benchmarks/results/particles.json
	$(PY) -m benchmarks.particle_windows --json benchmarks/results/particle_windows.json
	$(PY) -m benchmarks.runtime --json benchmarks/results/runtime.json
	$(PY) -m benchmarks.scaling --json benchmarks/results/scaling.json

profile-nlsq: $(STAMP)
	$(PY) -m examples.nlsq_demo --profile profile/nlsq

profile-mcmc: $(STAMP)
	$(PY) -m examples.nlsq_demo --sample --profile profile/mcmc

docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(PY) -m mkdocs build --strict --quiet

lint: $(STAMP)
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

format: $(STAMP)
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

types: $(STAMP)
	$(PY) -m pyright

stress: $(STAMP)
	$(PYTEST) --stress -m stress tests/stress
	$(DOUBLE) $(PYTEST) --stress -m stress tests/stress

clean:
	rm -rf $(VENV) .jax_cache .pytest_cache .ruff_cache build dist profile site
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
