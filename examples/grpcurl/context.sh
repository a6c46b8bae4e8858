#!/usr/bin/env bash
# Earlier sessions and lessons that bear on a topic. (scope read)
# usage: context.sh TOPIC [PROJECT]
source "$(dirname "$0")/call.sh"
usage "$#" 1 'TOPIC [PROJECT]'

call ContextService/GetContext <<< "{\"topic\": $(text "$1"), \"project\": $(given "${@:2:1}")}"
