#!/bin/sh
# The tests of till: one line for each, then how many there were.
# Exits with 1 when a test fails.
set -u
cd "$(dirname "$0")" || exit 2

number=0
failed=0

# check NAME EXPECTED [OPTION...]: runs till on the ledger that follows.
check() {
    name=$1
    expected=$2
    shift 2
    number=$((number + 1))
    actual=$(./till.sh "$@" - 2>&1)
    if [ "$actual" = "$expected" ]; then
        echo "ok $number - $name"
    else
        failed=$((failed + 1))
        echo "not ok $number - $name"
        printf '%s\n' "$expected" | sed 's/^/#   expected: /'
        printf '%s\n' "$actual" | sed 's/^/#        got: /'
    fi
}

check 'a sale is added' 'total 2.38
vat 0.38' << 'LEDGER'
sale;tea;1;2.38;19
LEDGER

check 'quantities multiply the unit price' 'total 9.60
vat 1.53' << 'LEDGER'
sale;coffee;3;3.20;19
LEDGER

check 'refunds are subtracted' 'total 3.20
vat 0.00' << 'LEDGER'
sale;stamps;2;3.20;0
refund;stamps;1;3.20;0
LEDGER

check 'a full refund leaves no VAT behind' 'total 0.00
vat 0.00' << 'LEDGER'
sale;book;1;9.99;7
refund;book;1;9.99;7
LEDGER

check 'half a cent of VAT goes away from zero' 'total 0.21
vat 0.11' << 'LEDGER'
sale;sticker;1;0.21;100
LEDGER

check 'more refunds than sales make a negative day' 'total -1.05
vat -0.53' << 'LEDGER'
refund;mug;1;1.05;100
LEDGER

check 'items are listed in order of appearance' 'tea 1.00
bun 0.50
total 1.50
vat 0.10' --by item << 'LEDGER'
sale;tea;1;1.00;7
sale;bun;1;0.50;7
LEDGER

check 'comments and empty lines are skipped' 'total 1.00
vat 0.00' << 'LEDGER'
# Monday

sale;loaf;1;1.00;0
LEDGER

check 'a line that cannot be read stops with its number' \
    'till: line 2 cannot be read: sale;loaf;1;cheap;0' << 'LEDGER'
sale;loaf;1;1.00;0
sale;loaf;1;cheap;0
LEDGER

echo "$number tests, $failed failed"
[ "$failed" -eq 0 ]
