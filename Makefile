# One door to everything. `make` alone lists the targets.

SHELL := /bin/bash
.DEFAULT_GOAL := help

# Extra arguments for the binary: make run ARGS="--listen 127.0.0.1:9000"
ARGS ?=
SEEDS ?= 100000
KILLS ?= 2000
RUNS ?= 100000

BIN := $(or $(CARGO_TARGET_DIR),target)/release/interlock

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: release ## Build the binary and start everything in one process (ARGS="…")
	$(BIN) up $(ARGS)

.PHONY: demo-reset
demo-reset: ## Throw away what `make run` has kept, so that the demo starts over
	@# The brackets keep the pattern from finding the shell that runs this very line.
	@! pgrep -f '$(BIN) u[p]' >/dev/null || { echo 'Interlock is running here: stop it first (Ctrl-C)' >&2; exit 1; }
	rm -rf interlock-data

.PHONY: test
test: ## Everything that must pass before a change lands (NEXTEST_ARGS="…")
	scripts/test

.PHONY: check
check: ## The fast loop: format, lints, tidy, core
	scripts/need rustfmt clippy
	cargo fmt --all --check
	cargo clippy --workspace --all-targets -- -D warnings
	cargo test --quiet -p interlock-tidy -p interlock-core

.PHONY: console
console: ## Build the operator console, which the next build of the binary embeds
	scripts/need console-packages
	npm --prefix console run --silent build

.PHONY: bench
bench: release ## Measure this build (ARGS="…")
	$(BIN) bench all $(ARGS)

.PHONY: bench-peers
bench-peers: release ## Measure other engines on this machine with the same workloads
	bench/peers/run

.PHONY: bench-console
bench-console: release ## Measure the console over a long history (RUNS=100000)
	scripts/need console-packages chromium
	INTERLOCK_BIN=$(abspath $(BIN)) RUNS=$(RUNS) npm --prefix console run --silent many

.PHONY: soak
soak: ## Long simulation and kill runs, and a rolling upgrade (SEEDS=100000 KILLS=2000)
	SEEDS=$(SEEDS) KILLS=$(KILLS) scripts/soak

.PHONY: gameday
gameday: release ## Rehearse a failover: kill a worker and a server, see how soon each is made good (GAMEDAY_ARGS="…")
	scripts/with-postgres scripts/gameday.py $(BIN) $(GAMEDAY_ARGS)

.PHONY: dist
dist: ## Make a release in dist/: tarball, SHA-256, bill of materials
	scripts/dist

.PHONY: image
image: ## Make a container image (an OCI layout) from the release in dist/, without a daemon
	@ls dist/interlock-*-linux-x86_64.tar.gz >/dev/null 2>&1 || scripts/dist
	@for tarball in dist/interlock-*-linux-x86_64.tar.gz; do scripts/image.py "$$tarball" "$${tarball%.tar.gz}.oci.tar"; done

.PHONY: clean
clean: ## Remove what builds have made
	cargo clean

.PHONY: release
release: console
	cargo build --release -p interlock-cli --bin interlock
