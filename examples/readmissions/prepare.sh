#!/usr/bin/env bash
# The stays of two hospitals that do not exist: the last stay of each patient of the north, and all stays of the south. The same rows every time.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:?"usage: prepare.sh FOLDER"}
mkdir -p "$folder"
cp "$here/job.toml" "$folder"

# A generator of Lehmer (multiplier 16807, modulus 2^31 - 1): awk's own differs from machine to machine.
rows() {
    awk -v seed="$1" -v count="$2" -v what="$3" '
        function next_number() { state = (16807 * state) % 2147483647; return state }
        function below(bound) { return int(next_number() / 2147483647 * bound) }
        function day(number,    month, days) {
            split("31 28 31 30 31 30 31 31 30 31 30 31", days, " ")
            for (month = 1; number >= days[month]; month++) number -= days[month]
            return sprintf("2024-%02d-%02d", month, number + 1)
        }
        BEGIN {
            state = seed * 1000003 % 2147483647
            next_number()
            split("surgery cardiology oncology geriatrics", wards, " ")
            for (row = 0; row < count; row++) {
                if (what == "north")
                    printf "P%05d,%s,%s\n", row * 3 + below(3), day(below(330)), wards[1 + below(4)]
                else
                    printf "P%05d,%s,%d.%02d\n", below(6000), day(below(360)), 200 + below(9000), below(100)
            }
        }'
}

{ echo "patient,left_on,ward"; rows 7 2000 north; } >"$folder/north.csv"
{ echo "patient,came_on,cost"; rows 11 3000 south; } >"$folder/south.csv"
