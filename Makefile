# Needs python3 (3.10 or newer, with venv and ensurepip), a C compiler and make. All that is installed goes into .venv.

PYTHON ?= python3
FMUS := $(shell find fmus -type f ! -path '*/__pycache__/*')
PACKAGING := pyproject.toml setup.py
KERNEL := $(wildcard fmimaster/kernel/*.h fmimaster/kernel/build.py) $(filter-out %/_kernel.c,$(wildcard fmimaster/kernel/*.c))

.PHONY: demo test test-windows thorough check site clean

demo: .venv/reference-fmus
	.venv/bin/fmimaster demo two-mass --output-directory demo-output

# The tests start hundreds of Pythons: without files of compiled modules, each would compile all it imports.
test: .venv/reference-fmus .venv/with-test
	PYTHONDONTWRITEBYTECODE= .venv/bin/python -m pytest -n auto --dist worksteal

# By a Windows Python under wine. What it needs is in .venv/windows, made at the first time.
test-windows: .venv/reference-fmus .venv/with-test .venv/with-release
	.venv/bin/python tools/windows.py

thorough: .venv/reference-fmus .venv/with-test
	PYTHONDONTWRITEBYTECODE= .venv/bin/python -m pytest -n auto --dist worksteal -m thorough

check: .venv/reference-fmus .venv/with-dev
	PATH="$(CURDIR)/.venv/bin:$$PATH" tools/check

site: .venv/reference-fmus .venv/with-docs
	.venv/bin/python -m mkdocs build --quiet --strict
	@echo "The documentation is in site/index.html"

clean:
	rm -rf .venv build dist site demo-output fmimaster/reference *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' \
	    || { echo "fmimaster needs Python 3.10 or newer. Name one: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
	    || { echo "$(PYTHON) cannot make virtual environments: its module ensurepip is missing." \
	              "Install it (Debian and Ubuntu: package python3-venv), or name another Python:" \
	              "make PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv .venv

# Editable: changes in fmimaster/ count at once. Installing builds the kernel and the reference FMUs too. Warnings of the C
# compiler are errors here, but not where users install. An older kernel would hide that the new one cannot be built.
INSTALL := CFLAGS=-Werror .venv/bin/python -m pip install --quiet --disable-pip-version-check --editable

.venv/installed: .venv/bin/python $(PACKAGING) $(KERNEL)
	@rm -f fmimaster/kernel/_kernel*.so
	$(INSTALL) ".[plot,progress]"
	@.venv/bin/python -c 'import fmimaster.kernel._kernel' \
	    || { echo "The kernel was not built: pip install -v --editable . shows the compiler's messages." >&2; exit 1; }
	touch $@

.venv/with-%: .venv/installed
	$(INSTALL) ".[all,$*]"
	touch $@

.venv/reference-fmus: .venv/installed $(FMUS)
	.venv/bin/python fmus/build.py fmimaster/reference --werror
	touch $@
