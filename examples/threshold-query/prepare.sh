#!/bin/sh
# Puts the job, for three servers and for four, and invented balances into FOLDER.
set -eu
folder=${1:?usage: prepare.sh FOLDER}
here=$(dirname "$0")
mkdir -p "$folder"
cp "$here/job.toml" "$folder/job.toml"
sed 's/"server-c"\]/"server-c", "server-d"]/' "$here/job.toml" >"$folder/job-four.toml"
seed=1
for bank in north-bank south-bank savings-bank; do
    awk -v seed=$seed 'BEGIN {
        srand(seed)
        print "client,balance"
        for (client = 1; client <= 2000; client++)
            print client "," int(exp(rand() * 17))
    }' >"$folder/$bank.csv"
    seed=$((seed + 1))
done
# Cents.
printf 'threshold\n5000000\n' >"$folder/threshold.csv"
echo "the jobs, balances of 2000 clients and a threshold are in $folder"
