#!/usr/bin/env bash
# Mosquitto of Debian: plain on PORT, TLS on PORT+1 (certificates in DIR/certs), TLS with a client certificate on PORT+2,
# without a login on PORT+3. The first two take the user test/secret. Sessions survive `again`. SETTINGS is added to its
# configuration.
. "$(dirname "$0")/lib.sh"
lock
debian mosquitto=mosquitto mosquitto_pub=mosquitto-clients openssl=openssl
unlock
[ "$action" = start ] || exit 0

"$here/certs.sh" "$dir/certs"
rm -f "$dir/passwords"
mosquitto_passwd -b -c "$dir/passwords" test secret
tls="cafile $dir/certs/ca.crt
certfile $dir/certs/server.crt
keyfile $dir/certs/server.key"
mkdir -p "$dir/data"
cat >"$dir/mosquitto.conf" <<CONF
user $(id -un)
per_listener_settings true
log_dest stdout
persistence true
persistence_location $dir/data/
max_queued_messages 0
${SETTINGS:-}
listener $port 127.0.0.1
password_file $dir/passwords
listener $((port + 1)) 127.0.0.1
password_file $dir/passwords
$tls
listener $((port + 2)) 127.0.0.1
require_certificate true
use_identity_as_username true
$tls
listener $((port + 3)) 127.0.0.1
allow_anonymous true
CONF
launch mosquitto -c "$dir/mosquitto.conf"
ready "mqtt://127.0.0.1:$port" 20 mosquitto_pub -h 127.0.0.1 -p "$port" -u test -P secret -t ready -m yes
