#!/usr/bin/env bash
# Checks Kubernetes manifests against the types of the API server, and container files: manifests.sh install |
# start FOLDER_FOR_CONFIG_MAPS FILE, or FILES in $MORE
. "$(dirname "$0")/lib.sh"
lock
golang manifests
unlock
[ "$action" = start ] || exit 0
CONFIG_MAPS=$dir "$kept/bin/manifests" "$port" ${MORE:+"$MORE"}
