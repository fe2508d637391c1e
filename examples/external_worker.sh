#!/bin/sh
# A program that does one piece of work of an `external` step, with curl and jq; see docs/external.md.
#   WAYPOST_URL=https://waypost.example WAYPOST_KEY=wp_… sh external_worker.sh labelling
set -eu

call() {
    curl --silent --show-error --fail-with-body --header "Authorization: Bearer $WAYPOST_KEY" \
        --header "Content-Type: application/json" --data "$2" "$WAYPOST_URL/api/v1/external/$1"
}

work=$(call reserve "{\"queues\": [\"$1\"], \"worker\": \"$(hostname)\", \"wait\": 20}") || { printf '%s\n' "$work" >&2; exit 1; }
if [ -z "$work" ]; then
    echo "There is no work."
    exit 0
fi
token=$(printf %s "$work" | jq --raw-output .token)
labels=$(printf %s "$work" | jq '.input.hosts | length')
call finish "{\"token\": \"$token\", \"output\": {\"labels\": $labels}}"
