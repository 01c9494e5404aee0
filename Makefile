# The commands that anyone needs. `make` alone lists them.
# Every one that needs packages makes .venv first, and again when the lock or pyproject.toml changes.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
INSTALLED := $(VENV)/installed

NOTEBOOKS = $(wildcard notebooks solutions)

# Most tests wait for processes more than they compute. A file's tests stay together.
TWO_AT_A_TIME := -n 2 --dist loadfile

# A venv holds its own absolute path and a link to its interpreter: one that came along with a moved
# clone, or has lost its interpreter, is made anew. Of a link to another one, only the link goes.
ifneq ($(wildcard $(INSTALLED)),)
ifneq ($(shell cat $(INSTALLED)) $(wildcard $(PY)),$(CURDIR) $(PY))
STALE := stale
endif
endif

.PHONY: help lab test test-all notebooks site pictures workshop-check check bench gpu-check stale

help:
	@echo "make lab         open the course in JupyterLab (PORT=8890 insists on a port)"
	@echo "make test        everything that proves the course: style, sources, tests, notebooks"
	@echo "make test-all    the same with the slow tests, and the notebooks 20 times more on a busy core"
	@echo "make check       the fast part of make test"
	@echo "make notebooks   build the notebooks from their sources (LESSONS=\"00_start_here ...\")"
	@echo "make workshop-check   eight people on this machine at once (N=20 LESSONS=\"00_start_here ...\")"
	@echo "make site        web pages of the lessons and solutions, in build/site"
	@echo "make pictures    the pictures of README.md, taken of the lessons in JupyterLab"
	@echo "make bench       this launcher beside torchrun and spawn"
	@echo "make gpu-check   the course's scripts on NCCL beside gloo (needs only torch and numpy)"
	@echo "PYTHON=python3.12 chooses the interpreter that .venv is made with: 3.11 or newer."

stale:

$(INSTALLED): constraints.txt pyproject.toml $(STALE)
	@command -v "$(PYTHON)" >/dev/null || { echo "There is no $(PYTHON) here. Install Python 3.11 or newer, or name one: make PYTHON=/path/to/python3.12"; exit 1; }
	@"$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "The course needs Python 3.11 or newer, and $(PYTHON) is not. Name a newer one: make PYTHON=/path/to/python3.12"; exit 1; }
	@"$(PYTHON)" -c 'import ensurepip, venv' 2>/dev/null || { echo "$(PYTHON) lacks the venv module. On Debian and Ubuntu: sudo apt install python3-venv"; exit 1; }
	@echo "Installing the course's packages into $(VENV). This takes some minutes, once."
	@test ! -L $(VENV) || rm $(VENV)
	@"$(PYTHON)" -m venv $(if $(STALE),--clear) $(VENV)
	@$(PY) -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[lab,test]'
	@printf '%s\n' "$(CURDIR)" > $@

# JUPYTER_PATH: a user's own kernelspec may be called python3; this environment's comes first.
# PATH: a terminal inside JupyterLab finds this environment's torchrun.
lab: $(INSTALLED)
	@JUPYTER_PATH="$(CURDIR)/$(VENV)/share/jupyter$${JUPYTER_PATH:+:$$JUPYTER_PATH}" \
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" VIRTUAL_ENV="$(CURDIR)/$(VENV)" \
	exec $(PY) -m jupyterlab --ServerApp.root_dir="$(CURDIR)" \
		--LabApp.default_url=/lab/tree/notebooks/00_start_here.ipynb \
		$(if $(PORT),--ServerApp.port=$(PORT) --ServerApp.port_retries=0) \
		$$(test "$$(id -u)" -ne 0 || echo --allow-root) \
		$$(test "$$(uname)$$DISPLAY$$WAYLAND_DISPLAY$$BROWSER" != Linux || echo --no-browser)

test: $(INSTALLED)
	$(PY) -m ruff check .
	$(PY) tools/build.py --check
	$(PY) -m pytest $(TWO_AT_A_TIME) --nbval tests $(NOTEBOOKS)

test-all: $(INSTALLED)
	$(PY) -m ruff check .
	$(PY) tools/build.py --check
	$(PY) -m pytest $(TWO_AT_A_TIME) --slow --nbval tests $(NOTEBOOKS)
	$(PY) tools/repeat.py 20

check: $(INSTALLED)
	$(PY) -m ruff check .
	$(PY) tools/build.py --check
	$(PY) -m pytest --quiet tests/lessons tests/unit

notebooks: $(INSTALLED)
	$(PY) tools/build.py $(LESSONS)
	$(PY) tools/workshop.py plan

# PYTHONPATH: the course in this folder, also where another one is installed.
workshop-check: $(INSTALLED)
	PYTHONPATH="$(CURDIR)" $(PY) tools/workshop.py check $(if $(N),--people $(N)) $(LESSONS)

site: $(INSTALLED)
	$(PY) tools/site_pages.py

pictures: $(INSTALLED)
	$(PY) tools/pictures.py

bench: $(INSTALLED)
	$(PY) -m benchmarks.launch

# A machine with GPUs brings its own torch, so nothing is installed here. PYTHON wins where given.
ifeq ($(origin PYTHON),file)
gpu-check: CHOSEN = $(if $(wildcard $(PY)),$(PY),$(PYTHON))
else
gpu-check: CHOSEN = $(PYTHON)
endif
gpu-check:
	PYTHONPATH="$(CURDIR)$${PYTHONPATH:+:$$PYTHONPATH}" "$(CHOSEN)" -m benchmarks.gpu_check
