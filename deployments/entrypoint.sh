#!/bin/sh
# Reads secrets from files: NAME_FILE=/run/secrets/... sets NAME, for each name below.  PostgreSQL's
# libraries read PGPASSWORD, so that no password is in an address, where some characters are special.
set -eu
for name in PGPASSWORD PREFECT_SERVER_DATABASE_PASSWORD PREFECT_API_AUTH_STRING \
    PREFECT_SERVER_API_AUTH_STRING DPRELEASE_AGENCY_KEY DPRELEASE_WEBHOOK; do
    file=$(printenv "${name}_FILE" || true)
    if [ -n "$file" ]; then
        value=$(cat "$file")
        export "$name=$value"
    fi
done
umask "${UMASK:-022}"
if [ "${1:-} ${2:-}" = "prefect server" ]; then
    shift 2
    set -- python -m flows.operation.pages "$@"  # browsers then ask no other host
elif [ -n "${DPRELEASE_AGENCY_KEY:-}" ]; then
    shown=$(printf %s "$DPRELEASE_AGENCY_KEY" | sed 's/[\\"]/\\&/g')
    export "PREFECT_CLIENT_CUSTOM_HEADERS={\"Dprelease-Agency\": \"$shown\"}"
fi
exec "$@"
