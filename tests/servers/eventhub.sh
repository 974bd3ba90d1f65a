#!/usr/bin/env bash
# A stand-in for Azure Event Hubs in memory, ours, over rhea, Microsoft's library of AMQP for Node.js: see eventhub/server.js. AMQP
# at PORT, a face for tests over HTTP at PORT + 1, and AMQP over TLS at PORT + 2 (certificates in DIR/certs). The policy `test` has
# the key `secret`. DIR/client runs Microsoft's own client, see eventhub/client.js.
. "$(dirname "$0")/lib.sh"

lock
debian npm=npm node=nodejs
wanted=$(cat "$here/eventhub"/*.js* <(node --version) | cksum)
if [ "$(cat "$kept/.wanted" 2>/dev/null)" != "$wanted" ]; then
  rm -rf "$kept/node_modules"
  cp "$here/eventhub/package.json" "$here/eventhub/package-lock.json" "$here/eventhub"/*.js "$kept"
  quietly npm ci --silent --prefix "$kept" --ignore-scripts --no-audit --no-fund
  echo "$wanted" >"$kept/.wanted"
fi
unlock
[ "$action" = start ] || exit 0

debian openssl=openssl
"$here/certs.sh" "$dir/certs"
printf '#!/bin/sh\nNODE_EXTRA_CA_CERTS=%s exec node %s "$@"\n' "$dir/certs/ca.crt" "$kept/client.js" >"$dir/client"
chmod +x "$dir/client"
launch node "$kept/server.js" "$port" "$dir/certs/server.crt" "$dir/certs/server.key"
ready "http://127.0.0.1:$((port + 1))" 20 answers_tcp "$((port + 1))"
