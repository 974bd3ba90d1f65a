#!/usr/bin/env bash
# Google Cloud Pub/Sub in memory: Google's own pstest behind gRPC, without TLS and credentials, for the project `test`.
# A face for tests is at the next port over HTTP, see pubsub/main.go. SETTINGS='-stream-timeout 2s' are its own options.
. "$(dirname "$0")/lib.sh"
lock
golang pubsub
unlock
[ "$action" = start ] || exit 0

# shellcheck disable=SC2086 # several words are meant
launch "$kept/bin/pubsub" -port "$port" ${SETTINGS:-}
ready "http://127.0.0.1:$((port + 1))" 20 answers_tcp "$((port + 1))"
