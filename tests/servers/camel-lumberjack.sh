#!/usr/bin/env bash
# A Lumberjack v2 server that is not Elastic's: Apache Camel's. Events go to DIR/events.ndjson before they are
# acknowledged.
. "$(dirname "$0")/lib.sh"
. "$here/java.sh"
jars=$kept/lib

install() {
  local wanted
  wanted=$(cat "$here"/camel-lumberjack/* "$0" | cksum)
  [ "$(cat "$kept/installed" 2>/dev/null)" != "$wanted" ] || return 0
  maven "$here/camel-lumberjack/pom.xml" "$jars"
  compile "$kept/server" "$(ls "$jars"/*.jar | paste -sd:)" "$here/camel-lumberjack/LumberjackServer.java"
  echo "$wanted" >"$kept/installed"
}

lock
java_home
install
unlock
[ "$action" = start ] || exit 0

rm -f "$dir/events.ndjson"
launch "$java/bin/java" -Xmx256m -Dorg.apache.logging.log4j.level=WARN -cp "$kept/server:$jars/*" LumberjackServer \
  "$port" "$dir/events.ndjson"
ready "lumberjack://localhost:$port" 60 answers_tcp "$port"
