# `make demo` and `make test` set up everything they need; nothing but python3 (3.11 or later), make and pip's registry.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin

.PHONY: demo test coverage trial examples bench bench-gpu papers lint hooks clean

demo: $(VENV)/.demo
	$(BIN)/featherweight demo --output output

test: $(VENV)/.test lint
	$(BIN)/pytest -n 2 --dist loadgroup $(if $(COVERAGE),--cov=featherweight)

# Half as slow again as `make test`: kernels run in plain Python whenever they are traced. Ends with a report, and a floor.
coverage:
	$(MAKE) test COVERAGE=1

# Twenty minutes of hostile use, of which `make test` has one: MINUTES and SEED say how long and which, and are printed.
trial: $(VENV)/.test
	TRIAL_MINUTES=$(or $(MINUTES),20) TRIAL_SEED=$(or $(SEED),$(shell date +%s)) $(BIN)/pytest -n 2 --dist worksteal tests/trial

# The examples with other libraries' optimizers, which have an environment of their own.
examples: $(VENV)-examples/.made
	$(VENV)-examples/bin/pytest tests/test_examples.py

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

hooks: $(VENV)/.test
	$(BIN)/python -m pip install --quiet pre-commit
	$(BIN)/pre-commit install

bench: $(VENV)/.test
	$(BIN)/python benchmarks/peers/pinocchio_peer.py
	$(BIN)/python benchmarks/peers/derivatives.py
	$(BIN)/python benchmarks/peers/functions.py
	$(BIN)/python benchmarks/peers/regressors.py
	$(BIN)/python benchmarks/peers/frames.py
	$(BIN)/python benchmarks/peers/inverse_kinematics.py
	$(BIN)/python benchmarks/peers/collisions.py
	$(BIN)/python benchmarks/peers/assembly.py
	$(BIN)/python benchmarks/peers/calls.py
	$(BIN)/python benchmarks/peers/controller_tick.py
	$(BIN)/python benchmarks/peers/joint_space.py
	$(BIN)/python benchmarks/peers/contacts.py
	$(BIN)/python benchmarks/peers/loops.py
	$(BIN)/python benchmarks/peers/machine_use.py
	$(BIN)/python benchmarks/peers/entry_cost.py
	$(BIN)/python benchmarks/peers/start_up.py
	$(BIN)/python benchmarks/peers/simulation_peer.py
	$(BIN)/python benchmarks/peers/contact_geometry.py
	$(BIN)/python benchmarks/peers/environments.py
	$(BIN)/python benchmarks/peers/first_step.py
	$(BIN)/python benchmarks/peers/long_run.py
	$(BIN)/python benchmarks/peers/contact_solvers.py --limit 5
	$(BIN)/python benchmarks/peers/window_rate.py

# On a machine with an NVIDIA device, less than ten minutes; benchmarks/gpu/README.md says what it takes.
bench-gpu: $(VENV)/.test
	PYTHONPATH=benchmarks/peers $(BIN)/python benchmarks/gpu/run.py $(if $(MINUTES),--minutes $(MINUTES))

# ROBOTS is a folder with atlas.urdf and shadow_hand_right.xml, which no package has; what needs them is left out without.
papers: $(VENV)/.test
	PYTHONPATH=benchmarks/peers $(BIN)/python benchmarks/papers/make_report.py $(if $(ROBOTS),--robots $(ROBOTS))

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[demo]'
	touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	touch $@ $(VENV)/.demo

$(VENV)-examples/.made: pyproject.toml
	$(PYTHON) -m venv $(VENV)-examples
	$(VENV)-examples/bin/python -m pip install --quiet --editable '.[examples,simulation]' pytest
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-examples output build
