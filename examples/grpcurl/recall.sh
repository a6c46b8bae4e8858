#!/usr/bin/env bash
# What bears on a question, the best first. (scope read)
# usage: recall.sh QUERY [LIMIT [SCOPE...]]        e.g. recall.sh "lost cents" 5 EVENT LESSON
source "$(dirname "$0")/call.sh"
usage "$#" 1 'QUERY [LIMIT [SCOPE...]]'

query=$1 limit=${2:-5}
shift "$(($# < 2 ? $# : 2))"
scopes=()
for scope in "$@"; do
  scopes+=("SCOPE_$scope")
done
call RecallService/Recall << REQUEST
{
  "query": $(text "$query"),
  "limit": $limit,
  "scopes": $(texts ${scopes[@]+"${scopes[@]}"})
}
REQUEST
