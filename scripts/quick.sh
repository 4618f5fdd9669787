#!/usr/bin/env bash
# Unit tests, golden vectors, and one job of all parties as processes over TLS: what to run after each change. Built as the demo is, so that after
# `make demo` no library is built again.
source "$(dirname "$0")/lib.sh"

libraries=()
for crate in math session sandbox circuit prss link share device job program store protocol engine node; do
  libraries+=(--package "veil-$crate")
done
run cargo test --profile demo --no-default-features --locked --lib "${libraries[@]}"
run cargo test --profile demo --no-default-features --locked --package veil-prss --package veil-session --package veil-share --test golden
run cargo test --profile demo --no-default-features --locked --package veil-protocol --test tests -- golden
folder=$target/pay-gap
run cargo build --profile demo --no-default-features --locked --package veil-cli --bin veil --package veil-program --example pay-gap-generate
[[ -e $folder/job.toml ]] || run "$target/demo/examples/pay-gap-generate" "$folder"
run "$target/demo/veil" stats "$folder/job.toml" --processes --check --out "$folder/results-processes"
say "all passed. Next: make test"
