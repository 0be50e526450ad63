#!/bin/sh
# Checks what can be checked of these files without a server: the unit, the scripts, the rules,
# the dashboard. Debian: apt-get install systemd prometheus jq
set -eu
cd "$(dirname "$0")"

room=$(mktemp -d)
trap 'rm -r "$room"' EXIT

echo "== scripts"
for script in check.sh bin/* debian/p*; do
    sh -n "$script"
done

echo "== unit"
# systemd asks that the programs are there.
sed 's#^ExecStart=.*#ExecStart=/bin/true#; /^User=/d; /^Group=/d; /^Documentation=/d' \
    outrigger.service > "$room/outrigger.service"
systemd-analyze verify --man=no "$room/outrigger.service"
# In tenths. It has 44; where it has more, a setting was lost.
systemd-analyze security --offline=true --threshold=46 --no-pager outrigger.service | tail -1

echo "== rules"
promtool check rules prometheus/alerts.yml
promtool test rules prometheus/alerts_test.yml

echo "== dashboard"
jq -r '"groups: [{ name: dashboard, rules: [", (.. | objects | select(has("expr"))
    | .expr | gsub("\\$__rate_interval"; "5m") | gsub("\\$[a-z]+"; "x")
    | "{ record: a, expr: \(tojson) },"), "] }]"' grafana/outrigger.json > "$room/dashboard.yml"
promtool check rules --lint=none "$room/dashboard.yml"
# Nothing is drawn that the server does not say.
known='up|outrigger_(http_requests_total|http_request_duration_seconds_bucket|sessions|approvals)'
known="$known|outrigger_(spent_total|reserved|spans_total|spans_waiting)"
known="$known|gen_ai_(client_operation|execute_tool)_duration_seconds_(bucket|count)"
jq -r '.. | objects | .expr? // empty' grafana/outrigger.json | cat - prometheus/alerts.yml |
    grep -oE '\b((outrigger|gen_ai)_[a-z_]+|up)\{' | tr -d '{' | sort -u > "$room/used"
if grep -vxE "$known" "$room/used"; then
    echo "there is no such metric" >&2
    exit 1
fi
echo "all is well"
