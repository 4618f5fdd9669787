#!/usr/bin/env bash
# Patients of a clinic and entries of a registry that do not exist; and, to compare with, the patients that both have. The same rows every time.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
folder=${1:?"usage: prepare.sh FOLDER"}
mkdir -p "$folder"
cp "$here/job.toml" "$folder"

people() { # the first number, the step, how many: born on a day that follows from the number
    seq "$1" "$2" $(($1 + $2 * ($3 - 1))) | awk '{ printf "%d-%02d-%02d,A%06d\n", 1930 + $1 % 77, 1 + $1 % 12, 1 + $1 % 28, $1 }'
}

{ echo "born,insurance"; people 0 7 1000; } >"$folder/clinic.csv"
{ echo "birth_date,policy"; people 5 3 4000; } >"$folder/registry.csv"
{ echo "born,insurance"; comm -12 <(people 0 7 1000 | LC_ALL=C sort) <(people 5 3 4000 | LC_ALL=C sort); } >"$folder/expected.csv"
