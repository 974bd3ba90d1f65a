#!/usr/bin/env bash
# OpenSearch 3.8.0, one node, plain HTTP; its jars from Maven Central. SETTINGS='NAME=VALUE ...' adds
# to its settings. Without the plugins for security and index state management.
. "$(dirname "$0")/lib.sh"
. "$here/java.sh"

lock
java_home
wanted=$(cat "$here"/opensearch/* "$0" | cksum)
if [ "$(cat "$kept/installed" 2>/dev/null)" != "$wanted" ]; then
  maven "$here/opensearch/pom.xml" "$kept/lib"
  compile "$kept/node" "$(ls "$kept"/lib/*.jar | paste -sd:)" "$here/opensearch/OpenSearchNode.java"
  echo "$wanted" >"$kept/installed"
fi
unlock
[ "$action" = start ] || exit 0

rm -rf "$dir/home"
launch "$java/bin/java" -Xms512m -Xmx512m --enable-native-access=ALL-UNNAMED -Dorg.apache.logging.log4j.level=INFO \
  -cp "$kept/node:$kept/lib/*" OpenSearchNode "$dir/home" http.port="$port" ${SETTINGS:-}
ready "http://localhost:$port" 180 curl -sf "http://localhost:$port/_cluster/health?wait_for_status=green&timeout=1s"
