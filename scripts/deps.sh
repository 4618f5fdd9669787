#!/usr/bin/env bash
# Installs what building needs and this machine lacks: system packages by apt (as root), Rust by rustup.
# Does nothing where all is there. Prints what it does.
set -euo pipefail

# Edition 2024 and the workspace need it; keep equal to rust-version in Cargo.toml.
readonly RUST_AT_LEAST=1.95

export PATH="${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"

say() { printf '\033[1m==> %s\033[0m\n' "$*"; }
stop() { printf '%s\n' "$@" >&2; exit 1; }
has() { command -v "$1" >/dev/null 2>&1; }

# Package and the command that shows it is there.
packages() {
  local missing=()
  { has cc && has ld; } || missing+=(build-essential)
  has pkg-config || missing+=(pkg-config)
  has curl || missing+=(curl)
  has git || missing+=(git)
  has python3 || missing+=(python3)
  [[ -e /etc/ssl/certs/ca-certificates.crt ]] || missing+=(ca-certificates)
  # Counts instructions in the tier counts, which skips that where it is missing: nobody has to install it by hand.
  [[ ${1:-} != tools || $(id -u) != 0 ]] || has valgrind || ! has apt-get || missing+=(valgrind)
  # Verilog becomes circuits by Yosys, and is simulated by Icarus Verilog: the tests of both are skipped without.
  [[ ${1:-} != tools || $(id -u) != 0 ]] || has yosys || ! has apt-get || missing+=(yosys)
  [[ ${1:-} != tools || $(id -u) != 0 ]] || has iverilog || ! has apt-get || missing+=(iverilog)
  # The hardware is linted and simulated by Verilator, and proved by Yosys and Z3.
  [[ ${1:-} != tools || $(id -u) != 0 ]] || has verilator || ! has apt-get || missing+=(verilator)
  [[ ${1:-} != tools || $(id -u) != 0 ]] || has z3 || ! has apt-get || missing+=(z3)
  # Tests look at the files that a service opens, and take Landlock from it, by strace: they are skipped without.
  [[ ${1:-} != tools || $(id -u) != 0 ]] || has strace || ! has apt-get || missing+=(strace)
  # Links over libfabric are built where its headers are; their tests are skipped without.
  [[ ${1:-} != tools || $(id -u) != 0 ]] || [[ -e /usr/include/rdma/fabric.h ]] || ! has apt-get || missing+=(libfabric-dev)
  echo "${missing[@]}"
}

install_packages() {
  local missing
  missing=$(packages "$@")
  [[ -n $missing ]] || return 0
  local command="apt-get update && apt-get install --yes --no-install-recommends $missing"
  has apt-get || stop "Missing: $missing." "This machine has no apt-get; install them in its own way, then run make again."
  [[ $(id -u) == 0 ]] || stop "Missing: $missing. Install them, then run make again:" "" "    sudo sh -c '$command'" ""
  say "installing $missing"
  DEBIAN_FRONTEND=noninteractive sh -c "$command"
}

# Whether the cargo in PATH is recent enough.
rust_is_recent() {
  local version
  version=$(cargo --version 2>/dev/null | cut -d' ' -f2) || return 1
  [[ -n $version && $(printf '%s\n' "$RUST_AT_LEAST" "$version" | sort -V | head -n1) == "$RUST_AT_LEAST" ]]
}

install_rust() {
  rust_is_recent && return 0
  if has rustup; then
    say "updating Rust to at least $RUST_AT_LEAST"
    rustup toolchain install stable --profile minimal
    rustup default stable
  else
    say "installing Rust by rustup, https://rustup.rs, into ${CARGO_HOME:-$HOME/.cargo}"
    curl --proto '=https' --tlsv1.2 --silent --show-error --fail https://sh.rustup.rs |
      sh -s -- -y --profile minimal --no-modify-path
  fi
  rust_is_recent || stop "cargo is still older than $RUST_AT_LEAST: $(cargo --version 2>&1 || true)." \
    "Is another cargo before ${CARGO_HOME:-$HOME/.cargo}/bin in PATH?"
}

# Only `make test` and `make check` need them.
install_components() {
  cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 && return 0
  has rustup || stop "cargo fmt or cargo clippy is missing; install rustfmt and clippy of your Rust, then run make again."
  say "installing rustfmt and clippy"
  rustup component add rustfmt clippy
}

install_packages "$@"
install_rust
[[ ${1:-} != tools ]] || install_components
if [[ ${1:-} == tools ]] && ! { has yosys && has iverilog; }; then
  say "circuits from Verilog will not be tested; to have them tested: sudo apt-get install --no-install-recommends yosys iverilog"
fi
if [[ ${1:-} == tools ]] && ! { has verilator && has yosys-smtbmc && has z3; }; then
  say "hardware will not be tested; to have it tested: sudo apt-get install --no-install-recommends verilator yosys z3"
fi
if [[ ${1:-} == tools && ! -e /usr/include/rdma/fabric.h ]]; then
  say "links over libfabric will not be tested; to have them tested: sudo apt-get install --no-install-recommends libfabric-dev"
fi
say "$(cargo --version), $(cc --version | head -n1), $(python3 --version)"
