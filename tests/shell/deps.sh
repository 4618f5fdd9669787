#!/usr/bin/env bash
# scripts/deps.sh on machines that lack something, played with a PATH of stand-ins.
source "$(dirname "$0")/../../scripts/lib.sh"

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
# A machine with the named commands only; `id` says who runs.
machine() {
  rm -rf "$folder/bin" && mkdir "$folder/bin"
  printf '#!/bin/sh\necho %s\n' "$1" >"$folder/bin/id"
  chmod +x "$folder/bin/id"
  shift
  local name
  for name in bash cut sort head sh env "$@"; do ln -s "$(command -v "$name")" "$folder/bin/$name"; done
}
deps() { env -i HOME="$folder" PATH="$folder/bin" bash scripts/deps.sh >"$folder/output" 2>&1; }
expect() {
  grep -qF -- "$1" "$folder/output" && return
  { echo "expected: $1"; echo "got:"; cat "$folder/output"; } >&2
  exit 1
}
stand_in() {
  printf '#!/bin/sh\n%s\n' "$2" >"$folder/bin/$1"
  chmod +x "$folder/bin/$1"
}

machine 1000 python3
stand_in apt-get 'echo called >&2; exit 1'
deps && { echo "went on without a compiler" >&2; exit 1; }
expect "sudo sh -c 'apt-get update && apt-get install --yes --no-install-recommends build-essential pkg-config curl git"
! grep -q called "$folder/output" || { echo "called apt-get without being root" >&2; exit 1; }

machine 0 python3
stand_in apt-get 'echo "apt-get $*"; exit 0'
deps && { echo "went on without Rust" >&2; exit 1; }
expect "apt-get update"
expect "apt-get install --yes --no-install-recommends build-essential pkg-config curl git"
expect "installing Rust by rustup"

machine 1000
deps && { echo "went on without apt-get" >&2; exit 1; }
expect "This machine has no apt-get"

machine 1000
for tool in cc ld pkg-config curl git python3; do stand_in "$tool" "echo $tool 1.0"; done
stand_in cargo 'echo cargo 1.63.0'
stand_in rustup 'echo "rustup $*"'
deps && { echo "went on with a cargo that is too old" >&2; exit 1; }
expect "rustup toolchain install stable"
expect "cargo is still older than"

stand_in cargo 'echo cargo 1.100.0'
deps || { cat "$folder/output" >&2; exit 1; }
expect "cargo 1.100.0"
say "scripts/deps.sh: asks, installs and stops as it should"
