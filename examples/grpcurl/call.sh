# What the scripts share; to be sourced, with bash.
#
#   MNEME_ADDRESS  HOST:PORT of the server; default 127.0.0.1:50051
#   MNEME_API_KEY  the key; none for a server without keys
#   MNEME_TLS      1 for TLS with the system's certificates, or the path of a file of them
#   MNEME_CURL     grpcurl (the default), or buf for `buf curl`
# shellcheck shell=bash

set -euo pipefail

: "${MNEME_ADDRESS:=127.0.0.1:50051}"
: "${MNEME_CURL:=grpcurl}"
export MNEME_API_KEY="${MNEME_API_KEY:-}"

# Calls an RPC with the request on standard input: call RecallService/Recall <<< '{"query": "x"}'
call() {
  case "$1" in
    grpc.*) "call_with_$MNEME_CURL" "$1" ;;
    *) "call_with_$MNEME_CURL" "mneme.v1.$1" ;;
  esac
}

call_with_grpcurl() {
  local options=()
  case "${MNEME_TLS:-}" in
    "") options+=(-plaintext) ;;
    1) ;;
    *) options+=(-cacert "$MNEME_TLS") ;;
  esac
  if [ -n "$MNEME_API_KEY" ]; then
    # grpcurl fills in the key itself, so that no list of processes shows it.
    # shellcheck disable=SC2016
    options+=(-expand-headers -H 'authorization: Bearer ${MNEME_API_KEY}')
  fi
  grpcurl ${options[@]+"${options[@]}"} -d @ "$MNEME_ADDRESS" "$1"
}

call_with_buf() {
  local options=(--protocol grpc --reflect) scheme=https
  case "${MNEME_TLS:-}" in
    "")
      scheme=http
      options+=(--http2-prior-knowledge)
      ;;
    1) ;;
    *) options+=(--cacert "$MNEME_TLS") ;;
  esac
  if [ -n "$MNEME_API_KEY" ]; then
    # From a file, so that no list of processes shows the key.
    buf curl "${options[@]}" -H @<(echo "authorization: Bearer $MNEME_API_KEY") \
      -d @- "$scheme://$MNEME_ADDRESS/$1"
  else
    buf curl "${options[@]}" -d @- "$scheme://$MNEME_ADDRESS/$1"
  fi
}

# Text as JSON: text 'say "hi"' prints "say \"hi\"".
text() {
  local escaped="$1"
  escaped=${escaped//\\/\\\\}
  escaped=${escaped//\"/\\\"}
  escaped=${escaped//$'\n'/\\n}
  escaped=${escaped//$'\r'/\\r}
  escaped=${escaped//$'\t'/\\t}
  printf '"%s"' "$escaped"
}

# Text as JSON, or null where none is given, which leaves a filter out: given "${@:2:1}".
given() {
  if [ "$#" -gt 0 ]; then text "$1"; else printf 'null'; fi
}

# Texts as a JSON array: texts a b prints ["a", "b"].
texts() {
  local separator="" one
  printf '['
  for one in "$@"; do
    printf '%s' "$separator"
    text "$one"
    separator=", "
  done
  printf ']'
}

# Ends the script when arguments are missing: usage "$#" 2 "REPO LESSON".
usage() {
  if [ "$1" -lt "$2" ]; then
    echo "usage: $(basename "$0") $3" >&2
    exit 2
  fi
}
