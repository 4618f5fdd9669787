#!/usr/bin/env bash
# Proves modules of the hardware by Yosys and Z3: no assertion fails in the first cycles after reset, and none in any later one, by
# induction. What is proved stands in rtl/*/formal/proofs.txt; names on the command line choose modules.
source "$(dirname "$0")/lib.sh"

# Cycles from reset that are looked at one by one; induction speaks of all others.
readonly CYCLES=12

work=$(mktemp -d)
trap 'rm -r "$work"' EXIT

prove() {
  local module=$1 inside=$2 depth=$3 set="" parameter name
  shift 3
  for parameter in "$@"; do set+=" -set ${parameter%=*} ${parameter#*=}"; done
  local defines=(-D "PROVE_${module^^}") files=()
  for name in ${inside//[,-]/ } prim_stable "$module"; do
    [[ $name == *+ ]] && name=${name%+} && defines+=(-D "PROVE_${name^^}")
    files+=("$(ls rtl/*/rtl/"$name.sv")")
  done
  yosys -q -p "read_verilog -sv -formal ${defines[*]} $(printf -- '-I%s ' rtl/*/formal) ${files[*]}; chparam$set $module;
    prep -flatten -top $module; memory_map; opt -full; async2sync; dffunmap; opt_clean; write_smt2 -wires $work/model.smt2" \
    >"$work/log" 2>&1 || { cat "$work/log"; return 1; }
  # Proofs of nothing pass as well.
  grep -q '^; yosys-smt2-assert' "$work/model.smt2" || { echo "$module has no assertions"; return 1; }
  smt -t "$CYCLES" && { [[ $depth == - ]] || smt -i -t "$depth"; } || { cat "$work/log"; return 1; }
}

smt() { yosys-smtbmc --noprogress --unroll -s z3 "$@" "$work/model.smt2" >>"$work/log" 2>&1; }

for list in rtl/*/formal/proofs.txt; do
  while read -r module inside depth parameters; do
    [[ -z $module || $module == \#* ]] && continue
    (($# == 0)) || [[ " $* " == *" $module "* ]] || continue
    prove "$module" "$inside" "$depth" $parameters || { say "not proved: $module $parameters"; exit 1; }
    [[ $depth == - ]] && say "proved for $CYCLES cycles: $module $parameters" || say "proved: $module $parameters"
  done <"$list"
done
