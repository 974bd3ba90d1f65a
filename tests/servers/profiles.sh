#!/usr/bin/env bash
# Reads a profile with pprof's own library and says what is in it: profiles.sh install | start FOLDER FILE
. "$(dirname "$0")/lib.sh"
lock
golang profiles
unlock
[ "$action" = start ] || exit 0
"$kept/bin/profiles" "$port"
