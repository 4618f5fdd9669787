#!/bin/sh
# Puts the halves of the key together, which nobody may do in earnest, and decrypts FOLDER/RESULT with OpenSSL.
set -eu
folder=${1:?usage: check.sh FOLDER RESULT}
result=${2:?usage: check.sh FOLDER RESULT}
key=
i=1
while [ $i -lt 32 ]; do
    a=$(cut -c$i-$((i + 1)) "$folder/bank.key")
    b=$(cut -c$i-$((i + 1)) "$folder/notary.key")
    key=$key$(printf %02x $((0x$a ^ 0x$b)))
    i=$((i + 2))
done
openssl enc -d -aes-128-ctr -K "$key" -iv 00000000000000000000000000000000 -in "$result" | cmp - "$folder/letter.txt"
echo "OpenSSL decrypts $result to $folder/letter.txt"
