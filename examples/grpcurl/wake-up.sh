#!/usr/bin/env bash
# Where the work on a project stopped, and what to do next. (scope read)
# usage: wake-up.sh [PROJECT]
source "$(dirname "$0")/call.sh"

call ContextService/WakeUp <<< "{\"project\": $(given "${@:1:1}")}"
