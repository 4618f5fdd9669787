#!/bin/sh
# Puts all balances together, which nobody may do in earnest, and compares RESULT with them.
set -eu
folder=${1:?usage: check.sh FOLDER RESULT}
result=${2:?usage: check.sh FOLDER RESULT}
threshold=$(tail -n 1 "$folder/threshold.csv")
expected=$(mktemp)
trap 'rm -f "$expected"' EXIT
paste -d , "$folder/north-bank.csv" "$folder/south-bank.csv" "$folder/savings-bank.csv" |
    awk -F , -v threshold="$threshold" 'NR == 1 { print "above" } NR > 1 { print ($2 + $4 + $6 > threshold) }' >"$expected"
cmp "$expected" "$result"
above=$(grep -c '^1$' "$result")
echo "$above of $(($(wc -l <"$result") - 1)) clients are above $threshold, as the balances say"
