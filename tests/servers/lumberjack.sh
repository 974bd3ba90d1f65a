#!/usr/bin/env bash
# A Lumberjack v2 server (the protocol of Logstash's `beats` input) over Elastic's own library go-lumber. Events go
# to DIR/events.ndjson before they are acknowledged. With SECURITY=1 over TLS (certificates in DIR/certs), with
# SECURITY=2 for clients with a certificate only. SETTINGS='-delay 4s' waits before it acknowledges; a keep-alive
# is sent every second. SETTINGS='-forward HOST:PORT' starts a client over that library instead, see lumberjack/main.go.
. "$(dirname "$0")/lib.sh"
program=$kept/bin/lumberjack

lock
debian openssl=openssl
golang lumberjack
unlock
[ "$action" = start ] || exit 0

rm -f "$dir/events.ndjson"
options=()
if [ "${SECURITY:-0}" != 0 ]; then
  "$here/certs.sh" "$dir/certs"
  options+=(-cert "$dir/certs/server.crt" -key "$dir/certs/server.key")
fi
if [ "${SECURITY:-0}" = 2 ]; then options+=(-client-ca "$dir/certs/ca.crt"); fi
# shellcheck disable=SC2086 # several words are meant
launch "$program" -listen "127.0.0.1:$port" -out "$dir/events.ndjson" ${SETTINGS:-} "${options[@]}"
ready "lumberjack://localhost:$port" 20 answers_tcp "$port"
