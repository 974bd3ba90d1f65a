#!/usr/bin/env bash
# The OTLP receiver of the OpenTelemetry Collector, over gRPC, or over HTTP with SETTINGS='-http'. Logs go to
# DIR/logs.ndjson before they are acknowledged, a line for each request, in OTLP's JSON. With SECURITY=1 over TLS
# (certificates in DIR/certs). SETTINGS='-busy 3' refuses three requests for now, '-broken 1' one for good, and
# '-large 1' those of more than a MiB. SETTINGS='-forward HOST:PORT' starts a client over gRPC instead, see
# otelcol/forward.go.
. "$(dirname "$0")/lib.sh"
program=$kept/bin/otelcol

lock
debian openssl=openssl
golang otelcol
unlock
[ "$action" = start ] || exit 0

rm -f "$dir/logs.ndjson"
options=()
if [ "${SECURITY:-0}" != 0 ]; then
  "$here/certs.sh" "$dir/certs"
  options+=(-cert "$dir/certs/server.crt" -key "$dir/certs/server.key")
fi
# shellcheck disable=SC2086 # several words are meant
launch "$program" -listen "127.0.0.1:$port" -out "$dir/logs.ndjson" ${SETTINGS:-} "${options[@]}"
ready "otlp://localhost:$port" 20 answers_tcp "$port"
