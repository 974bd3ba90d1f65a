#!/usr/bin/env bash
# fake-gcs-server, a look-alike of Google's Cloud Storage in Go (github.com/fsouza/fake-gcs-server), in memory, without
# buckets. It takes requests with any token and without one.
. "$(dirname "$0")/lib.sh"
program=$kept/bin/fake-gcs-server

lock
wanted=$(cat "$here/gcs"/* | cksum)
if [ "$(cat "$kept/bin/.gcs" 2>/dev/null)" != "$wanted" ]; then
  command -v go >/dev/null || debian go=golang-go
  mkdir -p "$kept/bin"
  quietly env -C "$here/gcs" GOFLAGS=-mod=readonly go build -buildvcs=false -trimpath -o "$program" \
    github.com/fsouza/fake-gcs-server
  echo "$wanted" >"$kept/bin/.gcs"
fi
unlock
[ "$action" = start ] || exit 0

launch "$program" -scheme http -host 127.0.0.1 -port "$port" -backend memory -public-host "127.0.0.1:$port"
ready "http://127.0.0.1:$port" 30 curl -sf "http://127.0.0.1:$port/storage/v1/b"
