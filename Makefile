# Nothing is needed before these but make itself: on a bare Debian or Ubuntu they install what is missing.

export PATH := $(or $(CARGO_HOME),$(HOME)/.cargo)/bin:$(PATH)
.DEFAULT_GOAL := help
.PHONY: help wheel release gpu-bundle demo quick test tiers test-rtl test-soak test-cuda cuda check bench synth deps tools

help: ## What there is to make
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' Makefile

wheel: deps ## The wheel of the Python package, tried in an environment of its own
	@scripts/wheel.sh

demo: deps ## Three parties compute a pay-gap study, and join tables, as none of them could alone (minutes, from nothing)
	@scripts/demo.sh

quick: deps ## Unit tests, golden vectors and one job over TLS: after each change (minutes)
	@scripts/quick.sh

test: tools ## All tests but the long tiers (ten minutes, from nothing)
	@scripts/test.sh

tiers: ## The long tiers of tests, and which inputs changed; scripts/tiers.sh NAME runs one
	@scripts/tiers.sh

test-rtl: tools ## Lint, proofs and long benches of the hardware (an hour or two)
	@scripts/test-rtl.sh

test-soak: tools ## Two hostile members against a party while jobs run (ten minutes)
	@scripts/soak.sh

release: deps ## The program, one for all machines: with code for GPUs inside
	@scripts/release.sh

gpu-bundle: tools ## A directory that checks and measures a GPU elsewhere, by one command
	@scripts/gpu-bundle.sh

cuda: tools ## Kernels for GPUs, compiled and held to their budgets; needs no GPU
	@scripts/cuda.sh

test-cuda: cuda ## All kernels under sanitizers, each thread of a grid a thread; the bundle for GPUs (minutes)
	@scripts/emulate-sanitized.sh
	@scripts/gpu-bundle.sh --try

check: tools ## Format, lints, layers, links, words, supply chain: what to run before a commit
	@scripts/check.sh

bench: deps ## Rates per CPU-second of all parties, with SVG plots
	@scripts/bench.sh

synth: ## Resources of all cores on FPGAs, and clocks of small ones (hours)
	@scripts/synth-rtl.sh

deps: ## Install what building needs and this machine lacks
	@scripts/deps.sh

tools:
	@scripts/deps.sh tools
