#!/usr/bin/env bash
# Azurite, Microsoft's emulator of Azure Storage in Node.js (github.com/Azure/Azurite): blobs at PORT, kept in DIR/data. The account is
# `devstoreaccount1` with its public key; signatures are checked. With SECURITY=1 over TLS (certificates in DIR/certs), and
# tokens of Entra ID are taken too, of which all but the signature is checked.
. "$(dirname "$0")/lib.sh"

lock
debian npm=npm node=nodejs
wanted=$(cat "$here/azurite"/* <(node --version) | cksum)
if [ "$(cat "$kept/.wanted" 2>/dev/null)" != "$wanted" ]; then
  rm -rf "$kept/node_modules"
  cp "$here/azurite/package.json" "$here/azurite/package-lock.json" "$kept"
  quietly npm ci --silent --prefix "$kept" --ignore-scripts --no-audit --no-fund
  echo "$wanted" >"$kept/.wanted"
fi
unlock
[ "$action" = start ] || exit 0

options=()
if [ "${SECURITY:-0}" = 1 ]; then
  debian openssl=openssl
  "$here/certs.sh" "$dir/certs"
  options=(--oauth basic --cert "$dir/certs/server.crt" --key "$dir/certs/server.key")
fi
launch node "$kept/node_modules/azurite/dist/src/blob/main.js" --silent --disableTelemetry --location "$dir/data" \
  --blobHost 127.0.0.1 --blobPort "$port" "${options[@]}"
ready "blob://localhost:$port" 60 answers_tcp "$port"
