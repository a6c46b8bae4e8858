#!/usr/bin/env bash
# Hands a session over to the next one: what was done. (scope write)
# usage: sleep.sh SESSION_ID PROGRESS...
source "$(dirname "$0")/call.sh"
usage "$#" 2 'SESSION_ID PROGRESS...'

session=$1
shift
call ContextService/Sleep <<< "{\"session_id\": $(text "$session"), \"progress\": $(texts "$@")}"
