#!/bin/sh
# Writes requirements.lock and tools/uv.lock: pinned versions with hashes, and no index address (docs/adr/0001).
set -eu
cd "$(dirname "$0")/.."
flags="--quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate --no-emit-index-url --no-emit-find-links"
# shellcheck disable=SC2086
.tools/uv/bin/uv pip compile $flags --upgrade --extra kafka --extra postgres --extra rules --extra spark --group dev pyproject.toml -o requirements.lock
# shellcheck disable=SC2086
.tools/uv/bin/uv pip compile $flags tools/uv.in -o tools/uv.lock
