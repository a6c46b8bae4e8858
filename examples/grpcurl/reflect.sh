#!/usr/bin/env bash
# An analysis of what was recorded. (scope read)
# usage: reflect.sh ANALYSIS [AGENT_ID]            e.g. reflect.sh ERROR_PATTERNS
#   ANALYSIS: ERROR_PATTERNS, TOOL_SEQUENCES, COST_ANALYSIS, PERFORMANCE_TRENDS, SESSION_COMPARISON
source "$(dirname "$0")/call.sh"
usage "$#" 1 'ANALYSIS [AGENT_ID]'

call ReflectService/Reflect <<< "{\"analysis\": \"ANALYSIS_$1\", \"agent_id\": $(given "${@:2:1}")}"
