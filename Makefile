# Every command sets itself up: you need Python 3.11 or newer (with venv) and make.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
DEMO   := $(VENV)/.demo
READY  := $(VENV)/.ready
# Python compiles what it imports; compiling everything would take longer than the demo itself.
INSTALL = $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile --constraint constraints.txt

.PHONY: demo test test-slow lint docs javascript format clean

demo: $(DEMO)
	@$(BIN)/sfumato demo

test: lint docs javascript
	$(BIN)/python -m pytest -n 2 -m "not slow and not cluster"
	$(BIN)/python -m pytest -m "cluster and not slow" tests/engines

test-slow: $(READY)
	$(BIN)/python -m pytest -n 2 -m "slow and not cluster"
	$(BIN)/python -m pytest -m "cluster and slow" tests/engines

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/python tools/check_style.py
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(READY)
	$(BIN)/sphinx-build -q -W --keep-going -b html docs docs/_build/html

# Needs Node 20 or newer. Without it the JavaScript client is not tested, unless SFUMATO_REQUIRE_ALL is set.
javascript: $(READY)
	@if node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)' 2>/dev/null; then \
	  (cd tests/browser && npm install --silent) && (cd clients/javascript && npm install --silent && npm test --silent) && \
	  $(BIN)/sfumato conformance -- node clients/javascript/conformance.js; \
	elif [ -n "$$SFUMATO_REQUIRE_ALL" ]; then echo "Node 20 or newer is missing."; exit 1; \
	else echo "Node 20 or newer is missing: the JavaScript client is not tested."; fi

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) docs/_build

# The demo needs few packages; the tests add the rest to the same environment.
$(DEMO): pyproject.toml constraints.txt
	$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11) and 'Sfumato needs Python 3.11 or newer')"
	$(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable ".[demo]"
	@touch $@

$(READY): $(DEMO)
	$(INSTALL) --editable ".[dev]"
	@touch $@
