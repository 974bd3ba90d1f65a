#!/usr/bin/env bash
# systemd-journald of Debian as the namespace skidder<PORT>, without a running systemd: sockets in
# /run/systemd/journal.skidder<PORT>, files in /var/log/journal/<machine id>.skidder<PORT>. Needs root.
. "$(dirname "$0")/lib.sh"
lock
debian journalctl=systemd
unlock
[ "$action" = start ] || exit 0

[ "$(id -u)" = 0 ] || fail "journald needs root"
[ -s /etc/machine-id ] || fail "there is no /etc/machine-id"
namespace=skidder$port
journal=/var/log/journal/$(cat /etc/machine-id).$namespace
rm -rf "$journal"
mkdir -p /etc/systemd "$journal"
printf '%s\n' '[Journal]' Storage=persistent RateLimitIntervalSec=0 SyncIntervalSec=1s SystemMaxFileSize=1M \
  >"/etc/systemd/journald@$namespace.conf"
launch /lib/systemd/systemd-journald "$namespace"
ready "unix://localhost:$port" 20 journalctl --namespace "$namespace" --sync
