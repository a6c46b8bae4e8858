#!/usr/bin/env bash
# Writes a backup of a tenant on the server's disk. (scope admin)
# usage: backup.sh [TENANT_ID]
source "$(dirname "$0")/call.sh"

call AdminService/Backup <<< "{\"tenant_id\": $(text "${1:-}")}"
