#!/bin/sh
# Makes .venv from requirements.lock and sees to Java 17 or newer. Needs a shell and Python 3.11 or newer.
# With the argument `tests` it also installs what only the tests need: a PostgreSQL server. With `proof`, the newest
# Spark beside the installed one too.
# Safe to run again: what is already there is left alone. Never asks for a password.
set -eu
cd "$(dirname "$0")/.."

venv=.venv
stamp_file=$venv/.stamp
newest_spark=$venv/spark-4.3
java_sentence="install Java 17 or newer (\`apt-get install openjdk-17-jre-headless\`, or Java 17 from the system's packages), then run this again"
postgres_sentence="install its server (\`apt-get install postgresql\`, or PostgreSQL from the system's packages), then run this again"

say() {
    printf 'setup: %s\n' "$*"
}

stop() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

have() {
    command -v "$1" >/dev/null 2>&1
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@" >/dev/null 2>&1
    elif have sudo; then
        sudo -n "$@" >/dev/null 2>&1
    else
        return 1
    fi
}

apt_install() {
    have apt-get || return 1
    as_root apt-get update -qq || true # an old package list may still do
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"
}

# --- Python ---

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1
}

find_python() {
    for candidate in python3 python3.13 python3.12 python3.11; do
        if new_enough "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    return 1
}

make_venv() {
    "$1" -m venv --clear "$venv" >/dev/null 2>&1 && return
    # Debian keeps `venv` in a package of its own, named after the exact Python version.
    name=$("$1" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    say "installing $name"
    apt_install "$name" || apt_install python3-venv || true
    "$1" -m venv --clear "$venv" >/dev/null 2>&1
}

install_packages() {
    stamp=$(cat requirements.lock pyproject.toml | cksum)
    if new_enough "$venv/bin/python" && [ "$(cat "$stamp_file" 2>/dev/null)" = "$stamp" ]; then
        say "Python packages are up to date"
        return
    fi
    if ! new_enough "$venv/bin/python" || ! "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
        python=$(find_python) || stop "Python 3.11 or newer is needed and was not found: install it, then run this again"
        say "making $venv with $("$python" --version)"
        make_venv "$python" || stop "\`$python -m venv\` fails: install its package (\`apt-get install python3-venv\`), then run this again"
    fi
    say "installing Python packages (some 500 MB the first time)"
    pip install --require-hashes -r requirements.lock || stop "the packages of requirements.lock could not be installed (see above)"
    pip install --no-deps --no-build-isolation -e . || stop "Penstock itself could not be installed (see above)"
    echo "$stamp" >"$stamp_file"
}

pip() {
    "$venv/bin/python" -m pip --quiet --disable-pip-version-check "$@"
}

# Another Spark beside the installed one, for the tests that ask both.
install_newest_spark() {
    stamp=$(cksum <tests/judge/spark-4.3.lock)
    [ "$(cat "$newest_spark/.stamp" 2>/dev/null)" = "$stamp" ] && return
    say "installing Spark 4.3 for the tests"
    rm -rf "$newest_spark"
    pip install --require-hashes --no-deps --target "$newest_spark" -r tests/judge/spark-4.3.lock || stop "the packages of tests/judge/spark-4.3.lock could not be installed (see above)"
    echo "$stamp" >"$newest_spark/.stamp"
}

# --- Java ---

java_major() {
    "$1" -version 2>&1 | sed -n -e 's/version "1\./version "/' -e 's/.*version "\([0-9]*\).*/\1/p' | head -n 1
}

is_java_17() {
    have "$1" || return 1
    major=$(java_major "$1")
    [ "${major:-0}" -ge 17 ]
}

install_java() {
    if have apt-get; then
        apt_install openjdk-17-jre-headless || apt_install default-jre-headless
    elif have dnf; then
        as_root dnf install -y -q java-17-openjdk-headless || as_root dnf install -y -q java-21-openjdk-headless
    elif have apk; then
        as_root apk add -q openjdk17-jre-headless
    elif have brew; then
        brew install -q openjdk@17 >/dev/null 2>&1 || return 1
        # Homebrew keeps it off the PATH.
        stop "Java 17 is installed; run this again after \`export JAVA_HOME=$(brew --prefix openjdk@17)\`"
    else
        return 1
    fi
}

see_to_java() {
    if [ -n "${JAVA_HOME:-}" ]; then
        # Spark takes JAVA_HOME's Java and no other, so installing one would not help.
        is_java_17 "$JAVA_HOME/bin/java" || stop "JAVA_HOME is $JAVA_HOME, which is not Java 17 or newer: set it to one that is, or unset it"
    elif ! is_java_17 java; then
        say "installing Java 17"
        install_java || stop "Java 17 could not be installed from here: $java_sentence"
        is_java_17 java || stop "the java on the PATH is still not 17 or newer: $java_sentence"
    fi
    say "Java $(java_major "${JAVA_HOME:+$JAVA_HOME/bin/}java") is there"
}

# --- PostgreSQL ---

postgres_folder() {
    "$venv/bin/python" -c 'from tests.postgres import find_programs; print(find_programs() or "")'
}

# Debian's package makes a cluster and starts it on port 5432; the tests start servers of their own.
apt_install_postgres() {
    no_cluster=/etc/postgresql-common/createcluster.d/penstock.conf
    as_root sh -c "mkdir -p ${no_cluster%/*} && echo 'create_main_cluster = false' >$no_cluster" || return 1
    apt_install postgresql && installed=0 || installed=1
    as_root rm -f "$no_cluster" || true
    return $installed
}

install_postgres() {
    if have apt-get; then
        apt_install_postgres
    elif have dnf; then
        as_root dnf install -y -q postgresql-server
    elif have apk; then
        as_root apk add -q postgresql
    elif have brew; then
        brew install -q postgresql@17 >/dev/null 2>&1
    else
        return 1
    fi
}

see_to_postgres() {
    if [ -z "$(postgres_folder)" ]; then
        say "installing PostgreSQL"
        install_postgres || stop "PostgreSQL could not be installed from here: $postgres_sentence"
        [ -n "$(postgres_folder)" ] || stop "\`initdb\` and \`postgres\` are still nowhere to be found: $postgres_sentence"
    fi
    say "PostgreSQL is there"
}

# With it every Spark of the tests starts in half the time. Without it they pass as well.
record_jvm_archive() {
    say "recording the JVM's class-data archive, unless it is there (a minute the first time)"
    "$venv/bin/python" -m penstock.actions.record_archive || say "it could not be recorded; Spark starts without"
}

install_packages
see_to_java
case "${1:-}" in
tests) see_to_postgres && record_jvm_archive ;;
proof) see_to_postgres && install_newest_spark && record_jvm_archive ;;
esac
