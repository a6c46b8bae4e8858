#!/usr/bin/env bash
# What is known of a project that bears on a question, in few words. (scope read)
# usage: knowledge.sh QUERY [PROJECT]
source "$(dirname "$0")/call.sh"
usage "$#" 1 'QUERY [PROJECT]'

call LearnService/SearchKnowledge <<< "{\"query\": $(text "$1"), \"filter\": {\"project\": $(given "${@:2:1}")}}"
