#!/usr/bin/env bash
# Logs one line of experience with a project. (scope write)
# usage: log.sh PROJECT ERROR|SUCCESS|PATTERN CONTEXT LESSON [COMMAND]
source "$(dirname "$0")/call.sh"
usage "$#" 4 'PROJECT ERROR|SUCCESS|PATTERN CONTEXT LESSON [COMMAND]'

call LearnService/CreateKnowledge << REQUEST
{
  "project": $(text "$1"),
  "type": "KNOWLEDGE_TYPE_$2",
  "context": $(text "$3"),
  "lesson": $(text "$4"),
  "command": $(text "${5:-}")
}
REQUEST
