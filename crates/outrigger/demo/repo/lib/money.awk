# Money in whole cents, so that no sum is ever a cent off.

# "3.20" -> 320. Prices have at most two decimals.
function cents(price,    parts) {
    split(price, parts, ".")
    return parts[1] * 100 + substr(parts[2] "00", 1, 2)
}

# 320 -> "3.20", -5 -> "-0.05".
function money(amount,    sign) {
    sign = ""
    if (amount < 0) {
        sign = "-"
        amount = -amount
    }
    return sprintf("%s%d.%02d", sign, int(amount / 100), amount % 100)
}

# The nearest whole cent; half a cent goes away from zero.
function nearest(amount) {
    return int(amount + 0.5)
}

# The VAT inside a gross amount, in cents.
function vat(gross, percent) {
    return nearest(gross * percent / (100 + percent))
}
