#!/usr/bin/env bash
# Makes a tenant and a key that reads and writes; the answer holds the secret, which is shown this
# once. (scope admin)
# usage: tenant.sh TENANT_ID [KEY_NAME]
source "$(dirname "$0")/call.sh"
usage "$#" 1 'TENANT_ID [KEY_NAME]'

call AdminService/CreateTenant <<< "{\"tenant_id\": $(text "$1")}" >&2
call AdminService/CreateApiKey << REQUEST
{
  "tenant_id": $(text "$1"),
  "name": $(text "${2:-agent}"),
  "scopes": ["KEY_SCOPE_READ", "KEY_SCOPE_WRITE"]
}
REQUEST
