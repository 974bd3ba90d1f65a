#!/usr/bin/env bash
# A SOCKS5 proxy, microsocks of Debian, for the user test/secret.
. "$(dirname "$0")/lib.sh"
lock
debian microsocks=microsocks
unlock
[ "$action" = start ] || exit 0

launch microsocks -i 127.0.0.1 -p "$port" -u test -P secret
ready "socks5://localhost:$port" 10 answers_tcp "$port"
