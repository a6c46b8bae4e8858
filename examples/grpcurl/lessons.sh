#!/usr/bin/env bash
# Lessons that bear on a question; without one, all lessons by page. (scope read)
# usage: lessons.sh [QUERY]
source "$(dirname "$0")/call.sh"

if [ "$#" -gt 0 ]; then
  call LearnService/SearchLessons <<< "{\"query\": $(text "$1")}"
else
  call LearnService/ListLessons <<< '{}'
fi
