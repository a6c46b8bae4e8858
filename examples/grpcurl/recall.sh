#!/usr/bin/env bash
# What bears on a question, the best first. (scope read)
# usage: recall.sh QUERY [LIMIT [KIND...]]        e.g. recall.sh "lost cents" 5 event lesson
source "$(dirname "$0")/call.sh"
usage "$#" 1 'QUERY [LIMIT [KIND...]]'

query=$1 limit=${2:-5}
shift "$(($# < 2 ? $# : 2))"
call RecallService/Recall << REQUEST
{
  "query": $(text "$query"),
  "limit": $limit,
  "scopes": $(texts "$@")
}
REQUEST
