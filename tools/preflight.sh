#!/bin/sh
# Says in one sentence what the machine lacks, or prints the Python interpreter to use.
set -u

fail() {
    echo "backcast: $1" >&2
    exit 1
}

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

python=""
for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
    if new_enough "$candidate"; then
        python=$candidate
        break
    fi
done
if [ -z "$python" ]; then
    found=$("${PYTHON:-python3}" -c 'import platform; print(platform.python_version())' 2>/dev/null) || found=none
    fail "Python 3.11 or newer is needed (found: $found); install it, or name one with 'make PYTHON=/path/to/python ...'."
fi
"$python" -c 'import ensurepip, venv' >/dev/null 2>&1 ||
    fail "$python cannot make virtual environments; install its venv package (on Debian: python3-venv)."

java=java
[ -n "${JAVA_HOME:-}" ] && java=$JAVA_HOME/bin/java
version=$("$java" -version 2>&1 | sed -n 's/.* version "\([^"]*\)".*/\1/p' | head -n 1)
major=${version%%[!0-9]*}
[ -n "$major" ] ||
    fail "Java 17 or newer is needed and '$java' does not run; install a JDK or JRE 17 or 21, or set JAVA_HOME."
[ "$major" -ge 17 ] ||
    fail "Java 17 or newer is needed ('$java' is $version); install a JDK or JRE 17 or 21, or set JAVA_HOME."
# Hadoop inside Spark 4.0 calls Subject.getSubject, which Java 23 and later refuse.
[ "$major" -lt 23 ] ||
    fail "Spark 4.0 does not run on Java 23 or newer ('$java' is $version); set JAVA_HOME to a Java 17 or 21."

echo "$python"
