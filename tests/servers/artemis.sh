#!/usr/bin/env bash
# Apache Artemis, a broker of AMQP 1.0 in Java: plain at PORT, over TLS at PORT + 1 (certificates in DIR/certs); user test/secret.
# Queues are made on first use. DIR/send QUEUE COUNT BYTES sends messages to one, see artemis/send.js.
. "$(dirname "$0")/lib.sh"
. "$here/java.sh"

install() {
  local wanted
  wanted=$(cat "$here"/artemis/* "$0" <(node --version) | cksum)
  [ "$(cat "$kept/installed" 2>/dev/null)" != "$wanted" ] || return 0
  maven "$here/artemis/pom.xml" "$kept/lib"
  compile "$kept/broker" "$(ls "$kept"/lib/*.jar | paste -sd:)" "$here/artemis/ArtemisBroker.java"
  cp "$here/artemis"/package*.json "$here/artemis/send.js" "$kept"
  quietly npm ci --silent --prefix "$kept" --ignore-scripts --no-audit --no-fund
  echo "$wanted" >"$kept/installed"
}

lock
debian npm=npm node=nodejs openssl=openssl
java_home
install
unlock
[ "$action" = start ] || exit 0

"$here/certs.sh" "$dir/certs"
printf '#!/bin/sh\nexec node %s %s "$@"\n' "$kept/send.js" "$port" >"$dir/send"
chmod +x "$dir/send"
launch "$java/bin/java" -Xms64m -Xmx256m -Dorg.apache.logging.log4j.level=WARN -cp "$kept/broker:$kept/lib/*" ArtemisBroker \
  "$port" "$dir/certs/server.pem"
ready "amqp://localhost:$port" 60 answers_tcp "$((port + 1))"
