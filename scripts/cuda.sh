#!/usr/bin/env bash
# Compiles all kernels for GPUs, with tools of PyPI in the target directory, and checks what the compiler made of them against kernels/budgets.toml.
# Needs no GPU. With "--fatbin": compiles alone; with "--made": not even that, if it is not done already. The code lies in cuda/kernels.fatbin of the
# target directory, and beside it `built`, if it is that of these kernels: with_gpus of lib.sh has it taken into the program.
source "$(dirname "$0")/lib.sh"

# All parts of one release: newer ones are what pip takes for those that are not named, and do not fit. CUDA 13.0 is what drivers from 580 on take.
readonly TOOLS=(
  nvidia-cuda-nvcc==13.0.88 nvidia-nvvm==13.0.88 nvidia-cuda-crt==13.0.88 nvidia-cuda-runtime==13.0.96 nvidia-cuda-cccl==13.0.85
  nvidia-cuda-cuobjdump==13.5.37 nvidia-cuda-nvdisasm==13.5.37
)
# Generations with code of their own; later ones make theirs of what is for the first.
readonly FLAGS=(
  -std=c++17 -O3 -Werror all-warnings -Xptxas -v
  -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90 -gencode arch=compute_80,code=compute_80
)
out=$target/cuda
tools=$out/tools
mkdir -p "$out"

install() {
  [[ -e $tools/complete && $(<"$tools/complete") == "${TOOLS[*]}" ]] && return
  say "installing ${TOOLS[*]} into $tools"
  rm -rf "$tools"
  python3 -m venv "$tools" && "$tools/bin/pip" install --quiet --disable-pip-version-check --retries 1 --timeout 20 "${TOOLS[@]}" || return 1
  echo "${TOOLS[*]}" >"$tools/complete"
}
# Whatever the code is made of; and that with what it is checked by.
now=$({ find kernels -type f -name '*.cu' -o -type f -name '*.h' | sort | xargs sha256sum; echo "${TOOLS[*]} ${FLAGS[*]}"; } | sha256sum)
made() { [[ -e $out/built && -e $out/kernels.fatbin && $(<"$out/built") == "$now" ]]; }
made || rm -f "$out/built" "$out/checked"
if [[ ${1:-} == --made ]] || { [[ ${1:-} == --fatbin ]] && made; }; then exit; fi
if ! install; then
  say "left out: kernels are not compiled for GPUs, as the tools for that cannot be had from PyPI"
  exit 0
fi
for CUDA_HOME in "$tools"/lib/python3*/site-packages/nvidia/cu13; do export PATH=$CUDA_HOME/bin:$PATH; done
checked=$(sha256sum kernels/budgets.*)$now
if ! made; then
  # What ptxas says of each kernel is for the check; it is shown if there is more to say.
  say "nvcc ${FLAGS[*]} kernels/all.cu"
  nvcc "${FLAGS[@]}" -fatbin -o "$out/kernels.fatbin" kernels/all.cu >"$out/ptxas.log" 2>&1 || { cat "$out/ptxas.log" >&2; exit 1; }
  # The probes of the emulator are no part of it, but they are kernels.
  nvcc "${FLAGS[@]}" -fatbin -o "$out/probes.fatbin" kernels/probes/probes.cu >"$out/probes.log" 2>&1 || { cat "$out/probes.log" >&2; exit 1; }
  echo "$now" >"$out/built"
fi
say "kernels for GPUs: $out/kernels.fatbin"
[[ ${1:-} == --fatbin ]] && exit
if [[ -e $out/checked && $(<"$out/checked") == "$checked" ]]; then
  say "budgets: nothing changed since they were kept"
  exit
fi
cuobjdump -sass "$out/kernels.fatbin" >"$out/kernels.sass"
run python3 kernels/budgets.py "$out/ptxas.log" "$out/kernels.sass" "$out/kernels.md"
echo "$checked" >"$out/checked"
