#!/usr/bin/env bash
# Whole jobs whose parties compute on the GPU of this machine, all of them in one process: AES-128 among three parties and between two, against the rows of
# a chunk and the lanes, and products; the same on the processor. A line per job, as soon as it is measured, as `veil-lab bench --json` prints it. The
# trace of the first job is summed up.
#   jobs.sh DEVICE FOLDER [SHARE]
# SHARE: of the rows, one in so many [default: 1]. A job that takes longer than VEIL_GPU_JOB seconds [default: 60] is ended, and the others go on.
set -uo pipefail

lab=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/bin/veil-lab
device=$1 out=$2 share=${3:-1}
lines=$out/jobs.jsonl trace=$out/aes.trace
status=0
: >"$lines"

# Name, rows, lanes, link, and what else the bench is told.
job() {
  local name=$1 rows=$(($2 / share)) lanes=$3 link=$4
  shift 4
  timeout --kill-after=10 "${VEIL_GPU_JOB:-60}" \
    "$lab" bench "$name" --batch $((rows > 1 ? rows : 1)) --cores "$lanes" --link "$link" --repeat 1 --json "$@" >>"$lines" && return
  echo "WRONG: bench $name --batch $rows --cores $lanes --link $link $*" >&2
  status=1
}
# The same on the device, with chunks of so many rows in place of what it wishes; of a share, the same share of a chunk.
on() {
  local chunk=$5 shared=$(($5 / share)) four=("${@:1:4}")
  shift 5
  job "${four[@]}" --device "$device" --chunk-rows $((shared > 64 ? shared : 64)) "$@"
}

job aes $((1 << 21)) 1 memory --device "$device" --trace "$trace"
on aes $((1 << 18)) 1 memory 65536
on aes $((1 << 16)) 1 memory 2048
job aes $((1 << 23)) 4 memory --device "$device"
on aes $((1 << 20)) 8 memory 65536
on aes $((1 << 20)) 8 tls 65536
job aes $((1 << 21)) 8 memory
job aes $((1 << 21)) 8 tls
job yao $((1 << 15)) 1 memory --device "$device"
on yao $((1 << 15)) 1 memory 16384
on yao $((1 << 14)) 1 memory 1024
job yao $((1 << 17)) 8 memory --device "$device"
job yao $((1 << 16)) 8 tls --device "$device"
job yao $((1 << 16)) 8 memory
job yao $((1 << 16)) 8 tls
on mul64 $((1 << 18)) 4 memory 65536
on mul64 $((1 << 17)) 4 memory 65536 --protocol rep4
on and $((1 << 20)) 4 memory 262144
job mul64 $((1 << 18)) 4 memory
job mul64 $((1 << 17)) 4 memory --protocol rep4
job and $((1 << 20)) 4 memory

"$lab" trace "$trace" || status=1
printf '\n%-6s %-5s %-12s %-6s %5s %9s %14s %14s %8s %6s\n' bench among device link lanes rows 'ops/s' 'ops/CPU-s' Gb/s MB
field() { sed -E "s/.*\"$1\":\"?([^,\"}]*).*/\1/"; }
while read -r line; do
  of() { field "$1" <<<"$line"; }
  printf '%-6s %-5s %-12s %-6s %5s %9s %14.0f %14.0f %8.1f %6.0f\n' "$(of bench)" "$(of protocol)" "$(of device)" "$(of link)" "$(of cores)" \
    "$(of batch)" "$(of rate_per_s)" "$(of rate_per_cpu_s)" "$(of gbit_per_s)" "$(of peak_rss_mb)"
done <"$lines"
exit "$status"
