#!/bin/sh
# Sees to a PostgreSQL server for the tests, which start private ones from it. Installs Debian's when root may, without
# making or starting a cluster. Anywhere else it says in one sentence what the tests will miss, and harms nothing.
set -u
oldest=15

new_enough() {
    version=$("$1" --version 2>/dev/null | sed -n 's/^postgres (PostgreSQL) \([0-9]*\).*/\1/p')
    [ -n "$version" ] && [ "$version" -ge "$oldest" ] && [ -x "$(dirname "$(readlink -f "$1")")/initdb" ]
}

found() {
    for server in "$(command -v postgres)" /usr/lib/postgresql/*/bin/postgres; do
        [ -x "$server" ] && new_enough "$server" && return 0
    done
    return 1
}

lacking() {
    echo "backcast: the tests of PostgreSQL will fail, because $1; install PostgreSQL $oldest or newer." >&2
    exit 0
}

found && exit 0
command -v apt-get >/dev/null 2>&1 || lacking "no server is installed here"
[ "$(id -u)" -eq 0 ] || lacking "no server is installed here and only root can install one"
echo "Installing PostgreSQL for the tests ..."
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() { DEBIAN_FRONTEND=noninteractive apt-get install --yes --quiet --no-install-recommends "$@" >>"$log" 2>&1; }
{
    apt-get update --quiet >>"$log" 2>&1
    # Debian's package makes a cluster and starts it as a service unless its common part was told not to before.
    install postgresql-common &&
        sed -i 's/^#\{0,1\}create_main_cluster.*/create_main_cluster = false/' /etc/postgresql-common/createcluster.conf &&
        install postgresql
} || lacking "apt-get could not install a server ($(tail -n 1 "$log"))"
found || lacking "Debian's server is older than that"
