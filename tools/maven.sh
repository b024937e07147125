#!/bin/sh
# Sees to Maven, which fetches a schema registry for the tests. Installs Debian's when root may. Anywhere else it says in
# one sentence what the tests will miss, and harms nothing.
set -u

lacking() {
    echo "backcast: the tests with a schema registry will fail, because $1; install Maven 3.6 or newer." >&2
    exit 0
}

command -v mvn >/dev/null 2>&1 && exit 0
command -v apt-get >/dev/null 2>&1 || lacking "Maven is not installed here"
[ "$(id -u)" -eq 0 ] || lacking "Maven is not installed here and only root can install it"
echo "Installing Maven for the tests ..."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
{
    apt-get update --quiet >>"$log" 2>&1
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends maven >>"$log" 2>&1
} || lacking "apt-get could not install it ($(tail -n 1 "$log"))"
command -v mvn >/dev/null 2>&1 || lacking "Debian's package brought none"
