# Reads the ledger line by line, and reports at the end.

BEGIN { FS = ";" }

/^#/ || NF == 0 { next }

NF != 5 || ($1 != "sale" && $1 != "refund") || $4 !~ /^[0-9]+(\.[0-9][0-9]?)?$/ {
    printf "till: line %d cannot be read: %s\n", NR, $0 | "cat >&2"
    failed = 1
    exit 1
}

{
    gross = cents($4) * $3
    if ($1 == "refund") gross = -gross
    total += gross
    tax += vat(gross, $5)
    if (!($2 in items)) order[++count] = $2
    items[$2] += gross
}

END {
    if (failed) exit 1
    if (by == "item") {
        for (i = 1; i <= count; i++) printf "%s %s\n", order[i], money(items[order[i]])
    }
    printf "total %s\n", money(total)
    printf "vat %s\n", money(tax)
}
