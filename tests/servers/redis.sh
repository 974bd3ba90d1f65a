#!/usr/bin/env bash
# Redis of Debian: the password is `secret`, and there is a user test/secret. With SECURITY=1 over TLS
# (certificates in DIR/certs; a client certificate is optional). SETTINGS adds to its command line.
. "$(dirname "$0")/lib.sh"
lock
debian redis-server=redis-server redis-cli=redis-tools openssl=openssl
unlock
[ "$action" = start ] || exit 0

options=(--port "$port") scheme=redis tls=()
if [ "${SECURITY:-0}" = 1 ]; then
  "$here/certs.sh" "$dir/certs"
  options=(--port 0 --tls-port "$port" --tls-auth-clients optional --tls-ca-cert-file "$dir/certs/ca.crt"
    --tls-cert-file "$dir/certs/server.crt" --tls-key-file "$dir/certs/server.key")
  scheme=rediss tls=(--tls --cacert "$dir/certs/ca.crt")
fi
# shellcheck disable=SC2086 # several words are meant
launch redis-server --bind 127.0.0.1 --dir "$dir" --save '' --appendonly yes --requirepass secret \
  --user test on '>secret' '~*' '&*' +@all "${options[@]}" ${SETTINGS:-}
ready "$scheme://localhost:$port" 20 redis-cli -h 127.0.0.1 -p "$port" "${tls[@]}" -a secret --no-auth-warning -e ping
