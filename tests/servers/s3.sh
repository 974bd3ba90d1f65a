#!/usr/bin/env bash
# versitygw, a server of S3 in Go (github.com/versity/versitygw), over files in DIR/data: buckets are folders, objects files. The key is `test`, the
# secret `secret of tests`; a user `reader`/`secret of readers` owns nothing. The region is `eu-test-1`. There are the
# buckets `logs` and `closed`. With SECURITY=1 over TLS (certificates in DIR/certs).
. "$(dirname "$0")/lib.sh"
program=$kept/bin/versitygw

lock
debian openssl=openssl
wanted=$(cat "$here/s3"/* | cksum)
if [ "$(cat "$kept/bin/.s3" 2>/dev/null)" != "$wanted" ]; then
  command -v go >/dev/null || debian go=golang-go
  mkdir -p "$kept/bin"
  quietly env -C "$here/s3" GOFLAGS=-mod=readonly go build -buildvcs=false -trimpath -o "$program" \
    github.com/versity/versitygw/cmd/versitygw
  echo "$wanted" >"$kept/bin/.s3"
fi
unlock
[ "$action" = start ] || exit 0

mkdir -p "$dir/data/logs" "$dir/data/closed" "$dir/metadata" "$dir/users"
options=() scheme=http trust=()
if [ "${SECURITY:-0}" = 1 ]; then
  "$here/certs.sh" "$dir/certs"
  options=(--cert "$dir/certs/server.crt" --key "$dir/certs/server.key") scheme=https trust=(--allow-insecure)
fi
# The file system need not have extended attributes.
launch env ROOT_ACCESS_KEY=test ROOT_SECRET_KEY='secret of tests' "$program" --port "127.0.0.1:$port" \
  --region eu-test-1 --keep-alive --quiet --iam-dir "$dir/users" "${options[@]}" posix --sidecar "$dir/metadata" "$dir/data"
# DIR/admin does what its arguments say, as `change-bucket-owner --bucket closed --owner reader`.
{
  echo '#!/bin/sh'
  printf '%q ' "$program" admin --access test --secret 'secret of tests' --region eu-test-1 "${trust[@]}" \
    --endpoint-url "$scheme://localhost:$port"
  echo '"$@"'
} >"$dir/admin"
chmod +x "$dir/admin"
has_reader() {
  "$dir/admin" list-users | grep -q reader ||
    "$dir/admin" create-user --access reader --secret 'secret of readers' --role user
}
ready "s3://localhost:$port" 20 has_reader
