#!/usr/bin/env bash
# Logs one line of experience with a repository. (scope write)
# usage: log.sh REPO ERROR|SUCCESS|PATTERN CONTEXT LESSON [COMMAND]
source "$(dirname "$0")/call.sh"
usage "$#" 4 'REPO ERROR|SUCCESS|PATTERN CONTEXT LESSON [COMMAND]'

call LearnService/LogKnowledge << REQUEST
{
  "repo": $(text "$1"),
  "type": "KNOWLEDGE_TYPE_$2",
  "context": $(text "$3"),
  "lesson": $(text "$4"),
  "command": $(text "${5:-}")
}
REQUEST
