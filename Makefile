# One command checks everything: `make check`. Needs uv: `pip install uv`.
UV ?= uv

.PHONY: check lint types floors test bench docs site plugins release help

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

bench:  ## All measurements that need nothing from outside, about ten minutes
	$(UV) run python bench

docs:  ## The generated parts of the docs
	$(UV) run python docs/generate.py

site:  ## The documentation as a site, in site/; nothing is fetched by it
	$(UV) run --group docs python docs/build_site.py

plugins:  ## The manifests of plugins and registries, from plugins/plugin.toml
	$(UV) run python plugins/generate.py

release:  ## Source distribution and wheel in dist/, built and checked; publishes nothing
	$(UV) run python release

help:  ## This list
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/'
