#!/usr/bin/env bash
# Checks Kubernetes manifests against the types of the API server, and container files: manifests.sh install |
# start FOLDER_FOR_CONFIG_MAPS FILE, or further ones in $MORE, one a line. With $ALIKE the first two must put the same pods on the nodes.
. "$(dirname "$0")/lib.sh"
lock
golang manifests
unlock
[ "$action" = start ] || exit 0
mapfile -t more < <(printf '%s' "${MORE:-}")
CONFIG_MAPS=$dir "$kept/bin/manifests" "$port" "${more[@]}"
