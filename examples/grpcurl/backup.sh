#!/usr/bin/env bash
# Writes a backup of a tenant on the server's disk, and waits until it is written. (scope admin)
# usage: backup.sh [TENANT_ID]
source "$(dirname "$0")/call.sh"

id="backup-$(date +%s)-$$"
call AdminService/Backup <<< "{\"tenant_id\": $(text "${1:-}"), \"operation_id\": \"$id\"}"
call OperationService/WaitOperation <<< "{\"operation_id\": \"$id\"}"
