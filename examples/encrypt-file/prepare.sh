#!/bin/sh
# Puts the job, two random halves of a key and a letter into FOLDER.
set -eu
folder=${1:?usage: prepare.sh FOLDER}
here=$(dirname "$0")
mkdir -p "$folder"
cp "$here/job.toml" "$folder/job.toml"
for half in bank notary; do
    (umask 077 && od -An -v -N16 -tx1 /dev/urandom | tr -d ' \n' >"$folder/$half.key")
done
i=0
while [ $i -lt 200 ]; do
    i=$((i + 1))
    echo "$i: Nobody holds the key that this letter is locked with."
done >"$folder/letter.txt"
echo "the job, its keys and its letter are in $folder"
