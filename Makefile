# `make try` shows what the tool does on a fresh machine; `make test` checks everything that CI checks.
# Each environment is installed once, and reinstalled only when pyproject.toml or constraints.txt change.

PYTHON ?= $(shell command -v python3.11 >/dev/null 2>&1 && python3.11 --version >/dev/null 2>&1 && echo python3.11 || echo python3)
PIP_INSTALL := -m pip install -q --disable-pip-version-check
# A third worker computes while others wait; files are started in the order of `testpaths`.
PYTEST ?= -q -n 3 --dist loadfile --no-loadscope-reorder --max-worker-restart 1

.PHONY: help try test lint docs bench model vsix test-editors audit sbom clean

help:
	@echo "make try    install the tool into .venv-try and predict the examples"
	@echo "make test   install everything into .venv and run formatting, lint, types and all tests"
	@echo "make docs   build the documentation as a site, into site/"
	@echo "make bench  measure the server and rlm-lsp check, compared with the bare encoder (about ten minutes)"
	@echo "make model  rebuild the shipped model from labels: make model LABELS=FOLDER RUN=FOLDER"
	@echo "make vsix   package the VS Code extension with the bundled server"
	@echo "make test-editors  test VS Code, Neovim, Helix and Emacs, with screenshots in build/editors (downloads them once)"
	@echo "make audit  look up known vulnerabilities of what a release is made of (needs the network)"
	@echo "make sbom   write what a release is made of to build/sbom, in CycloneDX (needs the network)"
	@echo "make clean  remove the environments and caches"

try: .venv-try/installed
	@echo "==> rlm-lsp predict examples"
	@.venv-try/bin/rlm-lsp predict examples
	@echo "==> it works; try .venv-try/bin/rlm-lsp predict FILE-OR-FOLDER; README.md shows how to set up an editor"

.venv-try/installed: pyproject.toml
	@$(MAKE) --no-print-directory check-python
	@echo "==> making .venv-try with $$($(PYTHON) --version)"
	@rm -rf .venv-try
	@$(PYTHON) -m venv .venv-try
	@echo "==> installing rlm-lsp from this checkout (about 280 MB unpacked)"
	@.venv-try/bin/python $(PIP_INSTALL) -e .
	@touch $@

test: lint
	@echo "==> tests"
	@.venv/bin/python -m pytest $(PYTEST)
	@echo "==> all checks passed"

lint: .venv/installed
	@echo "==> formatting, lint, types, layers"
	@mkdir -p build
	@.venv/bin/ruff format --check --quiet .
	@.venv/bin/ruff check --quiet .
	@.venv/bin/mypy --no-error-summary
	@.venv/bin/lint-imports --no-cache >build/imports.txt 2>&1 || { cat build/imports.txt; exit 1; }

# The tests build it too, and check its links and commands: pytest tests/docs
docs: .venv/installed
	@NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --strict
	@echo "==> site/index.html; its search needs a server: $(PYTHON) -m http.server --directory site"

.venv/installed: pyproject.toml constraints.txt
	@$(MAKE) --no-print-directory check-python
	@echo "==> making .venv with $$($(PYTHON) --version)"
	@rm -rf .venv
	@$(PYTHON) -m venv .venv
	@echo "==> installing rlm-lsp with everything that development needs (torch is large: minutes)"
	@.venv/bin/python $(PIP_INSTALL) -e '.[dev]' -c constraints.txt
	@touch $@

.PHONY: check-python
check-python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "rlm-lsp needs Python 3.11 or later; name one: make PYTHON=python3.12 ..." >&2; exit 1; }

bench: .venv-try/installed
	@.venv-try/bin/python -m tests.bench.server

# The label files of all bases -> data sets -> a trained model -> the files that ship -> the model card. Each step says
# what it does and how long it took; sources that are read already and a training that was stopped are taken up again.
SETS = functions measured leethub boj atcoder triton nas
DATA = $(foreach set,$(SETS),--data $(RUN)/$(set).parquet)
SHIPPED = model_core/rlm_core/builtin

model: .venv/installed
	@test -d "$(LABELS)" -a -n "$(RUN)" || { echo "name the folders: make model LABELS=FOLDER RUN=FOLDER" >&2; exit 1; }
	@mkdir -p $(RUN)
	@for set in functions leethub boj atcoder; do test -e $(RUN)/$$set.parquet || \
		.venv/bin/rlm-lsp data build $$set --labels $(LABELS)/$$set/labels.jsonl.gz --out $(RUN)/$$set.parquet || exit; done
	@test -e $(RUN)/measured.parquet || .venv/bin/rlm-lsp data build functions \
		--labels model_core/labels/functions.jsonl.gz --out $(RUN)/measured.parquet
	@test -e $(RUN)/triton.parquet || .venv/bin/rlm-lsp data build triton \
		--labels $(LABELS)/triton --labels $(LABELS)/triton_more --out $(RUN)/triton.parquet
	@test -e $(RUN)/nas.parquet || .venv/bin/python -m tools.nas --labels $(LABELS)/nas --out $(RUN)/nas.parquet
	@test -e $(RUN)/counterfactual.parquet || .venv/bin/python -m tools.counterfactual \
		--labels tools/counterfactual/labels.jsonl.gz --out $(RUN)/counterfactual.parquet
	@test -e $(RUN)/literal.parquet || .venv/bin/python -m tools.counterfactual \
		--labels tools/counterfactual/literal_labels.jsonl.gz --out $(RUN)/literal.parquet
	@test -e $(RUN)/hand_written.parquet || .venv/bin/python -m tools.counterfactual \
		--labels tools/counterfactual/hand_written_labels.jsonl.gz --out $(RUN)/hand_written.parquet
	@test -e $(RUN)/texts.parquet || .venv/bin/rlm-lsp data build texts --out $(RUN)/texts.parquet
	.venv/bin/rlm-lsp train $(DATA) --texts $(RUN)/texts.parquet --config configs/student.toml --out $(RUN)/student --resume
	@cat $(RUN)/student/times.json
	rm -rf $(RUN)/exported $(RUN)/joined
	.venv/bin/rlm-lsp export --model $(RUN)/student --out $(RUN)/exported
	@test -e $(RUN)/calls.parquet || .venv/bin/rlm-lsp data build calls \
		--labels $(LABELS)/functions/labels.jsonl.gz --out $(RUN)/calls.parquet
	@test -e $(RUN)/measured-calls.parquet || .venv/bin/rlm-lsp data build calls \
		--labels model_core/labels/functions.jsonl.gz --out $(RUN)/measured-calls.parquet
	@test -e $(RUN)/unseen-calls.parquet || .venv/bin/rlm-lsp data build calls \
		--labels model_core/labels/unseen.jsonl.gz --out $(RUN)/unseen-calls.parquet
	.venv/bin/rlm-lsp tune --work \
		$(foreach set,calls measured-calls counterfactual literal hand_written,--data $(RUN)/$(set).parquet) \
		--model $(RUN)/exported --name rlm-student --out $(RUN)/joined
	cp $(RUN)/joined/* $(SHIPPED)
	.venv/bin/python -m rlm_core.training.propagation_fit --data $(RUN)/calls.parquet $(RUN)/measured-calls.parquet \
		--unseen $(RUN)/unseen-calls.parquet --model $(SHIPPED)
	@test -e $(RUN)/growth.parquet || .venv/bin/rlm-lsp data build growth \
		--labels $(LABELS)/growth/labels.jsonl.gz --out $(RUN)/growth.parquet
	.venv/bin/python -m rlm_core.training.growth_fit --data $(RUN)/growth.parquet --model $(SHIPPED)
	@for set in scaled scaled_test; do test -e $(RUN)/$$set.parquet || \
		.venv/bin/rlm-lsp data build scaled --labels model_core/labels/$$set.jsonl.gz --out $(RUN)/$$set.parquet; done
	.venv/bin/python -m rlm_core.training.input_growth_fit --data $(RUN)/scaled.parquet --test $(RUN)/scaled_test.parquet \
		--model $(SHIPPED)
	.venv/bin/python -m rlm_core.training.sized_cost_fit --labels model_core/labels/scaled.jsonl.gz \
		--slopes $(RUN)/scaled.parquet --model $(SHIPPED) --write
	@test -e $(RUN)/networks.parquet || .venv/bin/python -m tools.networks build --labels $(LABELS)/networks \
		--graphs $(RUN)/networks --out $(RUN)/networks.parquet
	.venv/bin/python -m rlm_core.training.network_cost_fit --data $(RUN)/networks.parquet --model $(SHIPPED)
	.venv/bin/python -m tools.experiments.growth_report --data $(RUN)/growth.parquet \
		--page docs/model-card/growth.md > $(RUN)/growth.json
	.venv/bin/rlm-lsp eval $(DATA) --data $(RUN)/counterfactual.parquet --card MODEL_CARD.md

# Needs Node.js 22 or later, which it gets where it is missing, and a Python with venv: the wheel is built in an
# environment that has nothing but pip.
vsix: .venv-wheel/bin/python
	@PATH=$$(tests/editors/vscode/get_node.sh):$$PATH && cd vscode-extension && \
		export SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(git log -1 --format=%ct)} && \
		npm ci --no-fund --no-audit --loglevel=error && PYTHON=../.venv-wheel/bin/python npm run --silent package

.venv-wheel/bin/python:
	@$(MAKE) --no-print-directory check-python
	@$(PYTHON) -m venv .venv-wheel

test-editors: .venv/installed
	@PYTHON=.venv/bin/python tests/editors/run.sh

# A release: the wheel with all extras but those for training, and the extension.
RELEASE_EXTRAS = mcp,onnx,parquet,report,serve

.venv-release/installed: pyproject.toml
	@$(MAKE) --no-print-directory check-python
	@rm -rf .venv-release
	@$(PYTHON) -m venv .venv-release
	@echo "==> installing what a release is made of"
	@.venv-release/bin/python $(PIP_INSTALL) '.[$(RELEASE_EXTRAS)]'
	@touch $@

.venv-audit/installed:
	@rm -rf .venv-audit
	@$(PYTHON) -m venv .venv-audit
	@.venv-audit/bin/python $(PIP_INSTALL) 'pip-audit>=2.9' 'cyclonedx-bom>=7'
	@touch $@

# Both are looked up whatever the first finds. It fails too where a package could not be looked up, and says so.
audit: .venv-release/installed .venv-audit/installed
	@mkdir -p build
	@.venv-release/bin/python -m pip freeze --disable-pip-version-check --exclude rlm-lsp > build/release-packages.txt
	@status=0; \
	tools/audit.sh pip-audit .venv-audit/bin/pip-audit --strict --progress-spinner off --disable-pip --no-deps \
		-r build/release-packages.txt || status=$$?; \
	tools/audit.sh "npm audit" npm --prefix vscode-extension audit --package-lock-only || status=$$?; \
	exit $$status

sbom: .venv-release/installed .venv-audit/installed
	@mkdir -p build/sbom
	@.venv-audit/bin/cyclonedx-py environment --output-reproducible --pyproject pyproject.toml \
		-o build/sbom/rlm-lsp.cdx.json .venv-release/bin/python
	@cd vscode-extension && npm sbom --package-lock-only --omit dev --sbom-format cyclonedx \
		> ../build/sbom/vscode-extension.cdx.json
	@ls build/sbom

clean:
	rm -rf .venv .venv-* build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
