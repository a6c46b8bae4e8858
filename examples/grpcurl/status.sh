#!/usr/bin/env bash
# Is the server there, and what does it hold? (scope read)
# usage: status.sh
source "$(dirname "$0")/call.sh"

call grpc.health.v1.Health/Check <<< '{}'
call AdminService/GetStats <<< '{}'
