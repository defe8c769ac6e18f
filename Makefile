# Everything runs from .venv, which the first target that needs it creates.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# Where it is set, each of many processes would compile cwbench, and pytest all tests, again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-commands test-slow test-gpu test-cluster test-sharing wheel-test faults results-check results-page board newcomer smoke-methods docs lint install clean

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install -q -c constraints.txt -e '.[test]'
	touch $(STAMP)

install: $(STAMP)

demo: $(STAMP)
	$(BIN)/cwbench run --method finetuning,recall --seq point3 --protocol demo --results demo --no-live
	$(BIN)/cwbench run --method recall --seq pair-5-0 --protocol smoke --results demo/metaworld --no-live
	$(BIN)/cwbench report demo demo/report
	@echo "page: demo/report/index.html (fine-tuning forgets, RECALL does not)"
	@echo "next: . $(BIN)/activate && cwbench run --method ewc --seq point3 --protocol demo --results demo"

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m 'not slow and not commands and not cluster'

# Training from the command line, stopped and resumed, by several processes.
test-commands: $(STAMP)
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m 'commands and not slow'

test-slow: $(STAMP)
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m slow; code=$$?; [ $$code -eq 5 ] || exit $$code

# What only a GPU can show. Three minutes on an H200 with 16 cores.
test-gpu: $(STAMP)
	$(BIN)/python -m pytest -q -n 6 -m 'slow or not slow' tests/learner/test_cuda.py tests/learner/test_cuda_methods.py
	$(BIN)/python -m pytest -q -m slow tests/learner/test_gradients.py tests/fleet/test_stop.py -k cuda

# On a real Ray and a real Slurm of this machine; each skips, and says why, where it cannot start.
test-cluster: $(STAMP)
	-$(BIN)/pip install -q -c constraints.txt -e '.[ray,slurm]'
	$(BIN)/python -m pytest -q -rs -m cluster tests/launch

# Videos, trackers and other formats with the packages they are for.
test-sharing: $(STAMP)
	$(BIN)/pip install -q -e '.[video,track,share]' trackio
	$(BIN)/python -m pytest -q -rs tests/sharing

# The wheel in an environment of its own, used from another directory.
wheel-test: $(STAMP)
	$(BIN)/python -m pytest -q -m slow tests/test_wheel.py

# Every shipped table again, from the runs shipped with it.
results-check: $(STAMP)
	$(BIN)/python scripts/results_check.py

# docs/results/index.html: the page of the shipped runs on Meta-World. To be run after adding an archive.
results-page: $(STAMP)
	$(BIN)/python scripts/results_page.py

# build/board: the site of the contributions that docs/results/contributions.txt names; fails if one is refused.
board: $(STAMP)
	tr '\n' '\0' < docs/results/contributions.txt | xargs -0 $(BIN)/cwbench board --out build/board

# Kills, power cuts, full disks, damaged and mutated files; ends with a table of what became of them.
# LENGTH=0.1 injects a tenth of the faults, LENGTH=10 a fault before every call.
LENGTH ?= 1
faults: $(STAMP)
	CWBENCH_FAULTS=$(LENGTH) $(BIN)/python -m pytest -q tests/faults

# The README's commands, the tutorials, a video and the page, in a fresh clone with a fresh .venv.
newcomer:
	$(PYTHON) scripts/newcomer.py

# Every method on three Meta-World tasks for a few hundred steps; `DEVICE=cuda` on a GPU host.
DEVICE ?= auto
SMOKE ?= build/smoke
smoke-methods: $(STAMP)
	for m in $$($(BIN)/cwbench methods --names); do \
		start=$$(date +%s); \
		$(BIN)/cwbench run --method $$m --seq cw3-1 --protocol smoke --device $(DEVICE) --results $(SMOKE) --no-live || exit; \
		echo "$$m: $$(($$(date +%s) - start)) s"; \
	done

# The documentation as a site; warnings are errors.
docs: $(STAMP)
	$(BIN)/pip install -q -c constraints.txt -e '.[docs]'
	$(BIN)/sphinx-build -q -W --keep-going -b html docs build/docs
	@echo "build/docs/index.html"

clean:
	rm -rf $(VENV) build *.egg-info demo
