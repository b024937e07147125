#!/bin/sh
# Makes .venv exactly as requirements.lock says. Usage: tools/setup.sh PYTHON
set -eu
python=$1
tools=.tools/uv
cd "$(dirname "$0")/.."

if ! [ -x "$tools/bin/uv" ] || [ tools/uv.lock -nt "$tools/bin/uv" ]; then
    "$python" -m venv "$tools"
    "$tools/bin/python" -m pip install --quiet --disable-pip-version-check --require-hashes -r tools/uv.lock
    touch "$tools/bin/uv"
fi

# uv does not read pip's configuration; a machine that is set up for pip must not need a second set-up for uv.
pip_setting() {
    for section in :env: install global; do
        "$tools/bin/python" -m pip config get "$section.$1" 2>/dev/null && return
    done
    true
}
if [ -z "${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-}" ]; then
    index=$(pip_setting index-url)
    [ -z "$index" ] || export UV_DEFAULT_INDEX="$index"
fi
if [ -z "${UV_INDEX:-}${UV_EXTRA_INDEX_URL:-}" ]; then
    extra=$(pip_setting extra-index-url)
    [ -z "$extra" ] || export UV_INDEX="$extra"
fi
if [ -z "${SSL_CERT_FILE:-}" ]; then
    cert=$(pip_setting cert)
    [ -z "$cert" ] || export SSL_CERT_FILE="$cert"
fi
# Start-up is three times slower without compiled bytecode.
export UV_COMPILE_BYTECODE=1 UV_PYTHON_DOWNLOADS=never UV_NO_CONFIG=1
export UV_HTTP_TIMEOUT="${UV_HTTP_TIMEOUT:-300}"

if ! .venv/bin/python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    "$tools/bin/uv" venv --quiet --clear --python "$python" .venv
fi
echo "Installing the locked packages (Spark is a 430 MB download the first time) ..."
"$tools/bin/uv" pip sync --quiet --python .venv/bin/python --require-hashes requirements.lock
