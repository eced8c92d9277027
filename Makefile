# Every target makes what it needs by itself. PYTHON may name another interpreter (3.11 or newer).
PYTHON ?= python3.11
VENV := .venv
BIN := $(VENV)/bin
# The demo of the README: two real models for six chips of six years.
CHIPS := SM8550,SM8650,SM8750,SM8850,QCS8550,SA8295

.PHONY: build test image-test docs bench zoo fuzz constraints clean

build: $(VENV)/installed  ## Build the demo bundles into dist/
	$(BIN)/qnn-forge build silero-vad ppocr-v4 --soc $(CHIPS) --out dist

test: $(VENV)/installed-dev  ## Lint, types and all tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pytest

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e .
	touch $@

$(VENV)/installed-dev: $(VENV)/installed
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	touch $@

image-test:  ## Build both images with buildah and a model in them (Debian, root; docs/docker.md)
	docker/build-local.sh

docs: $(VENV)/installed-dev  ## Write the generated pages again
	$(BIN)/python -m qnn.chips.page > docs/chips.md
	$(BIN)/python -m qnn.model.reference docs/model-yaml.md
	$(BIN)/python -m qnn.catalogue docs/lint
	$(BIN)/python -m qnn.prepare.rewrites.page docs/rewrites.md
	$(BIN)/python -m qnn.faults.page > docs/faults.md
	$(BIN)/python -m tests.cases.page > docs/cases.md
	$(BIN)/python -m qnn.bundle.schema scripts/qnn/bundle/manifest.schema.json
	$(BIN)/python -m qnn.report.schema scripts/qnn/report/report.schema.json
	$(BIN)/python -m qnn.index.schema scripts/qnn/index/index.schema.json
	$(BIN)/python -m qnn.device.pages docs/device-errors

bench: $(VENV)/installed-dev  ## Run the benchmarks and write docs/performance.md
	$(BIN)/python -m benchmarks

zoo: $(VENV)/installed-dev  ## Build and verify every model on one chip of each kind (hours) and write docs/zoo.md
	$(BIN)/python -m benchmarks.zoo

# More than the tests draw; the same COUNT and SEED draw the same inputs. FUZZ_MINUTES ends the run whatever the count.
COUNT ?= 2000
SEED ?= 0
FUZZ_MINUTES ?= 20
fuzz: $(VENV)/installed-dev  ## Give COUNT made-up bad inputs to the commands; those that do harm go to dist/fuzz/
	$(BIN)/python -m tests.fuzz $(COUNT) --seed $(SEED) --minutes $(FUZZ_MINUTES) --keep dist/fuzz

constraints:  ## Resolve the newest versions into constraints.txt (then run the tests)
	rm -rf $(VENV)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	grep '^#' constraints.txt > constraints.new
	$(BIN)/pip freeze --exclude-editable >> constraints.new
	grep '^torch==' constraints.txt >> constraints.new
	mv constraints.new constraints.txt

clean:  ## Remove what this Makefile made
	rm -rf $(VENV) dist
