#!/usr/bin/env bash
# Keeps a lesson. (scope write)
# usage: learn.sh TITLE CONTENT [CATEGORY [LOW|NORMAL|HIGH|CRITICAL]]
source "$(dirname "$0")/call.sh"
usage "$#" 2 'TITLE CONTENT [CATEGORY [IMPORTANCE]]'

call LearnService/CreateLesson << REQUEST
{
  "title": $(text "$1"),
  "content": $(text "$2"),
  "category": $(text "${3:-}"),
  "importance": "IMPORTANCE_${4:-NORMAL}"
}
REQUEST
