#!/usr/bin/env bash
# A Docker engine of Debian's packages, which are unpacked and not installed: it listens on DIR/docker.sock, and over TLS with
# client certificates on PORT. There is one image, busybox:test, made of Debian's busybox; containers have no network
# (`--network none`). Needs root. DIR/docker is the client, with the socket.
. "$(dirname "$0")/lib.sh"
root=$kept/root
lock
if [ ! -x "$root/usr/bin/docker" ]; then
  command -v apt-get >/dev/null || fail "only Debian's packages are known"
  quietly apt-get update -qq
  mkdir -p "$kept/debs"
  (cd "$kept/debs"; quietly apt-get download -qq docker.io containerd runc busybox-static)
  for deb in "$kept"/debs/*.deb; do quietly dpkg -x "$deb" "$root"; done
fi
debian openssl=openssl
unlock
[ "$action" = start ] || exit 0
[ "$(id -u)" = 0 ] || fail "a Docker engine needs root"

image=$dir/image
mkdir -p "$image/bin"
cp "$(find "$root" -path '*/bin/busybox' | head -1)" "$image/bin"
for tool in $("$image/bin/busybox" --list); do [ "$tool" = busybox ] || ln -sf busybox "$image/bin/$tool"; done
"$here/certs.sh" "$dir/certs"
export PATH=$root/usr/sbin:$root/usr/bin:$PATH
printf '#!/bin/sh\nexec %s -H unix://%s "$@"\n' "$root/usr/bin/docker" "$dir/docker.sock" >"$dir/docker"
chmod +x "$dir/docker"
import() { tar -C "$image" -c . | "$dir/docker" import - busybox:test; }
launch dockerd --bridge none --iptables=false --ip-forward=false --ip-masq=false --storage-driver vfs \
  --shutdown-timeout 3 --data-root "$dir/data" --exec-root "$dir/run" --pidfile "$dir/docker.pid" --group root \
  -H "unix://$dir/docker.sock" -H "tcp://127.0.0.1:$port" \
  --tlsverify --tlscacert "$dir/certs/ca.crt" --tlscert "$dir/certs/server.crt" --tlskey "$dir/certs/server.key"
ready "unix://localhost:$port" 40 import
