#!/usr/bin/env bash
# Records events, one JSON object a line, as a stream. Sent again with the same ids, nothing
# changes. (scope write)
# usage: record.sh < events.jsonl
source "$(dirname "$0")/call.sh"

sed -e '/^[[:space:]]*$/d' -e 's/.*/{"event": &}/' | call EventService/StreamEvents
