#!/bin/sh
# Every test, WORKERS beside each other. Usage: tools/tests.sh PYTHON WORKERS
#
# They start brokers, databases and a hundred Sparks on whatever the machine has left. Up to three that failed are gone
# through once more with the machine to themselves: what fails there too is broken; what passes is named, to be looked into.
set -u
python=$1
workers=$2
cd "$(dirname "$0")/.."
failed=.pytest_cache/v/cache/lastfailed

rm -f "$failed"
"$python" -m pytest -n "$workers" --durations=15 tests
code=$?
[ "$code" -eq 1 ] || exit "$code"
number=$("$python" -c 'import json, sys; print(len(json.load(open(sys.argv[1]))))' "$failed") || exit 1
[ "$number" -le 3 ] || exit 1
echo "backcast: $number failed beside others; once more, alone:"
"$python" -c 'import json, sys; print(*json.load(open(sys.argv[1])), sep="\n")' "$failed"
"$python" -m pytest -n 0 --last-failed --last-failed-no-failures=none tests
