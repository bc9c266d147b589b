#!/usr/bin/env bash
# Records docs/sql.svg: runs the shell against a server in memory, in a terminal of tmux, and draws what stands there.
# Usage: docs/pictures/record-sql.sh [path of the zenobe binary]
set -euo pipefail
zenobe=$(realpath "${1:-target/release/zenobe}")
here=$(dirname "$(realpath "$0")")
work=$(mktemp -d)
terminal() { tmux -L "zenobe-picture-$$" "$@"; }
cleanup() {
  terminal kill-server 2>/dev/null || true
  kill "$server" 2>/dev/null || true
  rm -r "$work"
}
"$zenobe" serve --memory --listen 127.0.0.1:0 >"$work/welcome" 2>&1 &
server=$!
trap cleanup EXIT
until grep -q 'http://' "$work/welcome"; do sleep 0.1; done
address=$(grep -o 'http://[0-9.:]*' "$work/welcome" | head -1)

call() {
  curl -s "$address/" -H 'Content-Type: application/x-amz-json-1.0' -H "X-Amz-Target: DynamoDB_20120810.$1" \
    -H 'X-Amz-Date: 20260101T000000Z' -H 'Authorization: AWS4-HMAC-SHA256 Credential=a/20260101/us-east-1/dynamodb/aws4_request, SignedHeaders=host, Signature=00' \
    -d "$2" >/dev/null
}
call CreateTable '{"TableName":"Music","BillingMode":"PAY_PER_REQUEST",
  "AttributeDefinitions":[{"AttributeName":"Artist","AttributeType":"S"},{"AttributeName":"Song","AttributeType":"S"},
    {"AttributeName":"Released","AttributeType":"N"}],
  "KeySchema":[{"AttributeName":"Artist","KeyType":"HASH"},{"AttributeName":"Song","KeyType":"RANGE"}],
  "GlobalSecondaryIndexes":[{"IndexName":"by-year","KeySchema":[{"AttributeName":"Released","KeyType":"HASH"}],
    "Projection":{"ProjectionType":"ALL"}}]}'
"$zenobe" sql --endpoint "$address" --quiet -c "
  INSERT INTO Music VALUE {'Artist': 'Nina Simone', 'Song': 'Feeling Good', 'Released': 1965, 'Plays': 41, 'Tags': <<'jazz', 'soul'>>};
  INSERT INTO Music VALUE {'Artist': 'Nina Simone', 'Song': 'Sinnerman', 'Released': 1965, 'Plays': 120, 'Live': {'at': 'New York', 'in': [1961, 1964]}};
  INSERT INTO Music VALUE {'Artist': 'Miles Davis', 'Song': 'So What', 'Released': 1959, 'Plays': 77, 'Note': NULL};"

await_prompt() {
  for _ in $(seq 100); do
    sleep 0.1
    if terminal capture-pane -p -t 0 | grep -v '^$' | tail -1 | grep -qE '^(zenobe>|     ->) *$'; then return; fi
  done
  echo 'the shell does not answer' >&2
  exit 1
}
# Types a line and waits until the shell asks for the next one. A semicolon at the end would be tmux's own.
type_line() {
  terminal send-keys -t 0 -l "${1/%;/\\;}"
  terminal send-keys -t 0 Enter
  await_prompt
}
terminal -f /dev/null new-session -d -x 104 -y 60 \
  env HOME="$work" XDG_STATE_HOME="$work" TERM=xterm-256color "$zenobe" sql --endpoint "$address"
await_prompt
type_line '\d Music'
type_line "SELECT * FROM Music WHERE Artist = 'Nina Simone';"
type_line 'SELECT Song, Plays FROM Music'
type_line 'WHERE Plays > 50;'
type_line 'UPDATE Music SET Plays = Plays + 1'
type_line "WHERE Artist = 'Miles Davis' AND Song = 'So What' RETURNING MODIFIED NEW *;"
type_line '\x on'
type_line "SELECT * FROM Music.\"by-year\" WHERE Released = 1959;"
# The port is another one each time.
terminal capture-pane -p -t 0 | sed -e "s|$address|http://127.0.0.1:8000|" -e 's/[[:space:]]*$//' |
  python3 "$here/terminal-svg.py" >"$here/../sql.svg"
