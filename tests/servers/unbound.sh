#!/usr/bin/env bash
# Unbound of Debian with a zone of its own, example.test, and its addresses' names; it asks nobody else. `big` has more than
# fits into a datagram. With SECURITY=1 over TLS (certificates in DIR/certs).
. "$(dirname "$0")/lib.sh"
lock
debian unbound=unbound openssl=openssl
unlock
[ "$action" = start ] || exit 0

url=dns://127.0.0.1:$port tls=
if [ "${SECURITY:-0}" = 1 ]; then
  "$here/certs.sh" "$dir/certs"
  url=dns+tls://localhost:$port
  tls="tls-port: $port
  tls-service-key: $dir/certs/server.key
  tls-service-pem: $dir/certs/server.crt"
fi
cat >"$dir/unbound.conf" <<CONF
server:
  directory: "$dir"
  chroot: ""
  username: ""
  pidfile: ""
  use-syslog: no
  logfile: ""
  do-daemonize: no
  num-threads: 1
  interface: 127.0.0.1@$port
  module-config: "iterator"
  $tls
  local-zone: "." static
  local-zone: "example.test." static
  local-data: "host.example.test. 60 IN A 192.0.2.1"
  local-data: "host.example.test. 60 IN AAAA 2001:db8::1"
  local-data: "two.example.test. 60 IN A 192.0.2.2"
  local-data: "two.example.test. 60 IN A 192.0.2.3"
  local-data: 'host.example.test. 60 IN TXT "v=spf1 -all"'
  local-data: "alias.example.test. 60 IN CNAME host.example.test."
  local-zone: "2.0.192.in-addr.arpa." static
  local-data-ptr: "192.0.2.1 60 host.example.test"
  local-zone: "8.b.d.0.1.0.0.2.ip6.arpa." static
  local-data-ptr: "2001:db8::1 60 host.example.test"
$(for i in $(seq 20); do printf '  local-data: '"'"'big.example.test. 60 IN TXT "%s-%0200d"'"'"'\n' "$i" 0; done)
remote-control:
  control-enable: no
CONF
launch unbound -d -c "$dir/unbound.conf"
ready "$url" 30 answers_tcp "$port"
