# Makefile: the commands of this repository; `make` alone lists them. Everything is built into build/.

PYTHON := .venv/bin/python
ASSIGNMENTS := $(notdir $(wildcard assignments/A*))
export PYTHONPYCACHEPREFIX := $(CURDIR)/.venv/pycache

.PHONY: help
help: ## show this list
	@awk -F ':.*## ' '/^ifneq/ && !staff { exit } /^[a-z_0-9-]+:.*## / { printf "  make %-16s %s\n", $$1, $$2 }' \
		staff=$(wildcard staff) $(firstword $(MAKEFILE_LIST))

.PHONY: data
data: ## text -> .data/: shards, vocabulary; digits (TEXT=file for your own)
	@python3 autograder/venv.py data
	@$(PYTHON) dev/data/prepare.py $(if $(TEXT),--text "$(TEXT)")
	@$(PYTHON) dev/data/digits.py

.PHONY: test_dataloader test_gpt2
test_dataloader: ## build dev/test/test_dataloader
	@$(MAKE) -C dev/test $@
test_gpt2: ## build dev/test/test_gpt2
	@$(MAKE) -C dev/test $@

OPENMP = $(shell echo 'int main(void) { return 0; }' | $(CC) -fopenmp -xc - -o /dev/null \
	>/dev/null 2>&1 && echo -fopenmp)

.PHONY: train_gpt2 generate
train_gpt2: build/train_gpt2 ## build build/train_gpt2: trains GPT-2 in C
generate: build/generate ## build build/generate: text from a checkpoint
build/train_gpt2 build/generate: build/%: %.c $(wildcard llmc/*.h)
	@mkdir -p build
	@$(CC) -std=gnu11 -Wall -Wextra -Wno-unused-parameter -O3 $(OPENMP) -I. -o $@ $< -lm

.PHONY: native
native: build/libllmc.so ## build build/libllmc.so: what Python calls of your C code
build/libllmc.so: assignments/observe/native.c $(wildcard llmc/*.h)
	@mkdir -p build
	@$(CC) -std=gnu11 -Wall -Wextra -Wno-unused-parameter -O3 -shared -fPIC -I. -o $@ $< -lm

.PHONY: plot
plot: ## matplotlib, for curves as pictures (python -m llmc ... --plot)
	@python3 autograder/venv.py plot

.PHONY: ide
ide: ## pytest, to run the rows in your editor (-c assignments/pytest.ini)
	@python3 autograder/venv.py ide

.PHONY: dev
dev:
	@python3 autograder/venv.py dev ide data plot staff

.PHONY: clean
clean: ## remove what was built; spares your archive and where you stand
	@[ ! -d build ] || find build -mindepth 1 -maxdepth 1 ! -name pack ! -name state -exec rm -rf {} +
	@$(MAKE) -s -C dev/test clean

# How strictly the reference can be compiled.
PEDANTIC := -std=c11 -D_POSIX_C_SOURCE=200809L

# From here on what only staff have a use for: a student's pack holds no staff/.
ifneq ($(wildcard staff),)

.PHONY: quick
quick: dev ## the tests that are over within a minute
	@$(PYTHON) -m pytest -n auto -m "not slow"

.PHONY: test
test: dev ## all tests
	@$(PYTHON) -m pytest -n auto

.PHONY: regenerate
regenerate: dev ## write what is generated: llmc/, golden values, tables
	@$(PYTHON) -m staff.strip
	@$(PYTHON) -m staff.golden
	@$(PYTHON) -m staff.bars
	@$(PYTHON) -m staff.handouts

.PHONY: check
check: lint quick ## lint, generated files against their sources, quick tests

.PHONY: lint
lint: dev
	@$(PYTHON) -m ruff check .
	@$(PYTHON) -m ruff format --check .
	@.venv/bin/clang-format --dry-run -Werror $$(git ls-files '*.h' '*.c')
	@.venv/bin/clang-tidy --quiet reference/llmc/*.h -- -xc $(PEDANTIC) -Ireference
	@.venv/bin/clang-tidy --quiet *.c dev/test/test_gpt2.c -- -std=gnu11 -Ireference
	@$(PYTHON) -m mypy autograder staff
	@.venv/bin/codespell
	@$(PYTHON) -m staff.strip --check
	@$(PYTHON) -m staff.golden --check
	@$(PYTHON) -m staff.bars --check
	@$(PYTHON) -m staff.handouts --check

.PHONY: mutants
mutants: dev ## grade wrong solutions, print what each loses (`make mutants A0`)
	@$(PYTHON) -m staff.mutants $(or $(filter $(ASSIGNMENTS),$(MAKECMDGOALS)),$(ASSIGNMENTS))

.PHONY: auto
auto: dev ## mutate the reference mechanically, print what survives (`make auto A0`)
	@$(PYTHON) -m staff.mutants --auto $(or $(filter $(ASSIGNMENTS),$(MAKECMDGOALS)),$(ASSIGNMENTS))

.PHONY: bench
bench: dev ## time the grader, and the reference beside PyTorch (docs/benchmarks.md)
	@python3 autograder/venv.py bench
	@$(PYTHON) -m staff.bench

.PHONY: $(ASSIGNMENTS)
$(ASSIGNMENTS):
	@:

.PHONY: release
release: dev ## pack what students get: build/release/llmc-student-VERSION.tar.gz
	@$(PYTHON) -m staff.release

endif
