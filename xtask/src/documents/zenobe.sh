#!/bin/bash
# What `zenobe` is while the blocks of a page run: servers go to the background once they listen, and
# loads are short. Everything else is the binary itself. `cargo xtask test` writes this file beside the page's own.
set -euo pipefail

# A process that has ended is no longer running, whether or not anybody has asked for its exit code.
is_running() {
  kill -0 "$1" 2>/dev/null && ! grep -qs '^State:.Z' "/proc/$1/status"
}

serve() {
  local port=$PAGE_PORT word before=
  for word in "$@"; do
    case $before$word in
      *--help) exec "$ZENOBE_BINARY" "$@" ;;
      --listen\ * | --port\ * | -port\ * | *--listen=* | *--port=*) port=${word##*[:=]} ;;
    esac
    before="$word "
  done
  # One server per port: the page starts it anew.
  if [[ -e $PAGE_STATE/$port.pid ]]; then
    local former=$(<"$PAGE_STATE/$port.pid")
    kill "$former" 2>/dev/null || true
    while is_running "$former"; do sleep 0.01; done
  fi
  local log=$PAGE_STATE/$port.log
  : >"$log"
  ZENOBE_LISTEN=${ZENOBE_LISTEN:-127.0.0.1:$PAGE_PORT} "$ZENOBE_BINARY" "$@" >"$log" 2>&1 </dev/null &
  local pid=$!
  echo "$pid" >"$PAGE_STATE/$port.pid"
  while ! grep -q 'is listening on' "$log"; do
    if ! is_running "$pid"; then
      cat "$log" >&2
      wait "$pid"
    fi
    sleep 0.01
  done
  cat "$log"
}

bench() {
  local kept=()
  while (($#)); do
    case $1 in
      --duration | --warmup | --items) shift 2 ;;
      *) kept+=("$1"); shift ;;
    esac
  done
  exec "$ZENOBE_BINARY" "${kept[@]}" --duration 200ms --warmup 0s --items 1000
}

case ${1:-} in
  serve | local) serve "$@" ;;
  bench) bench "$@" ;;
  *) exec "$ZENOBE_BINARY" "$@" ;;
esac
