#!/bin/sh
# Adds up a ledger of sales and refunds. See README.md for the format.
set -eu

here=$(dirname "$0")
by=total

usage() {
    echo "usage: till.sh [--by item] LEDGER, or - for standard input" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
        --by)
            [ "${2-}" = item ] || usage
            by=item
            shift 2
            ;;
        -?*) usage ;;
        *) break ;;
    esac
done
[ $# -eq 1 ] || usage

if [ "$1" != - ] && [ ! -r "$1" ]; then
    echo "till.sh: cannot read $1" >&2
    exit 1
fi

exec awk -v by="$by" -f "$here/lib/money.awk" -f "$here/lib/report.awk" "$1"
