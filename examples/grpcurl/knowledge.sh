#!/usr/bin/env bash
# What is known of a repository that bears on a question, in few words. (scope read)
# usage: knowledge.sh QUERY [REPO]
source "$(dirname "$0")/call.sh"
usage "$#" 1 'QUERY [REPO]'

call LearnService/QueryKnowledge <<< "{\"query\": $(text "$1"), \"repo\": $(text "${2:-}")}"
