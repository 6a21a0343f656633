# One command checks everything: `make check`. Needs uv: `pip install uv`.
UV ?= uv

.PHONY: check lint types floors test bench docs help

check: lint types floors test  ## Everything that must hold

lint:  ## Style and format
	$(UV) run ruff check .
	$(UV) run ruff format --check .

types:  ## Types of the package, strictly
	$(UV) run basedpyright

floors:  ## Who may import whom
	$(UV) run lint-imports --no-cache

test:  ## All tests
	$(UV) run pytest -n auto

docs:  ## The generated parts of the docs
	$(UV) run python docs/generate.py

help:  ## This list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'
