#!/usr/bin/env bash
# Follows what is recorded, until it is interrupted. (scope read)
# usage: watch.sh [CURSOR]                         a watched message's cursor; 0: from the first on
source "$(dirname "$0")/call.sh"

call EventService/WatchEvents <<< "{\"after_cursor\": $(text "${1:-}")}"
