#!/usr/bin/env bash
# Elasticsearch 9.5.3, one node, its jars from Maven Central. With SECURITY=1 over TLS (certificates
# in DIR/certs) with the user elastic/secret, roles and API keys.
# KERBEROS=FOLDER, with SECURITY=1, is the folder of a realm of kerberos.sh, whose users it knows too: a trial licence.
# SETTINGS='NAME=VALUE ...' adds to its settings.
# The registry lacks some of its modules: no _data_stream API, no ingest processors. What stands in for ILM
# (LifecyclePlugin.java) is there without SECURITY.
. "$(dirname "$0")/lib.sh"
. "$here/java.sh"
version=9.5.3
jars=$kept/lib

# The server's own jars go on the class path, the rest into modules/, as the server wants it; no jar
# may be in both.
own='elasticsearch-|lucene-|log4j-(api|core)|log4j2-|ecs-|hppc|HdrHistogram|jopt|joni|jcodings|lz4'
netty='netty-|transport-netty4'
core='x-pack-core|http|icu4j|unboundid|slf4j|log4j-(1.2|slf4j)|commons-'
matching() { ls "$jars"/*.jar | grep -E "/($1)"; }
others() { ls "$jars"/*.jar | grep -vE "/($1)"; }

install() {
  local wanted type
  wanted=$(cat "$here"/elasticsearch/* "$0" | cksum)
  if [ "$(cat "$kept/installed" 2>/dev/null)" != "$wanted" ]; then
    maven "$here/elasticsearch/pom.xml" "$jars"
    compile "$kept/root" "$(matching "$own" | paste -sd:)" "$here/elasticsearch/RootPlugin.java"
    compile "$kept/lifecycle" "$(ls "$jars"/*.jar | paste -sd:)" "$here/elasticsearch/LifecyclePlugin.java"
    compile "$kept/node" "$(matching "$own" | paste -sd:)" "$here/elasticsearch/ElasticsearchNode.java"
    # SAML's library is not in the registry; the plugin only needs to see that these types exist.
    rm -rf "$kept/saml-source"
    for type in core/xml/XMLObject saml/saml2/core/RequestAbstractType saml/saml2/core/StatusResponseType; do
      mkdir -p "$kept/saml-source/org/opensaml/$(dirname $type)"
      echo "package org.opensaml.$(dirname $type | tr / .); public interface $(basename $type) {}" \
        >"$kept/saml-source/org/opensaml/$type.java"
    done
    compile "$kept/saml" "$kept" $(find "$kept/saml-source" -name '*.java')
    archive "$kept/root"; archive "$kept/lifecycle"; archive "$kept/saml"
    echo "$wanted" >"$kept/installed"
  fi
}
# archive FOLDER: FOLDER.jar of its classes, which is a zip file
archive() {
  (cd "$1" && rm -f "$1.jar" && quietly python3 -m zipfile -c "$1.jar" ./*)
}
module() { # NAME CLASS EXTENDS JAR...
  local home=$dir/home/modules/$1 jar
  mkdir -p "$home"
  for jar in "${@:4}"; do ln "$jar" "$home" 2>/dev/null || cp "$jar" "$home"; done
  printf '%s\n' "name=$1" "description=$1" "version=$version" "elasticsearch.version=$version" java.version=21 \
    "classname=$2" "extended.plugins=$3" >"$home/plugin-descriptor.properties"
}

lock
debian openssl=openssl python3=python3
java_home
install
unlock
[ "$action" = start ] || exit 0

"$here/certs.sh" "$dir/certs"
rm -rf "$dir/home"; mkdir -p "$dir/home/config"
module root RootPlugin '' "$kept/root.jar"
module transport-netty4 org.elasticsearch.transport.netty4.Netty4Plugin '' $(matching "$netty")
module x-pack-core org.elasticsearch.xpack.core.XPackPlugin '' $(matching "$core")
settings=(http.port="$port" ${SETTINGS:-})
options=() scheme=http
if [ "${SECURITY:-0}" = 1 ]; then
  module x-pack-security org.elasticsearch.xpack.security.Security x-pack-core "$kept/saml.jar" \
    $(matching "$netty") $(others "$own|$netty|$core")
  cp "$dir"/certs/{ca.crt,server.crt,server.key} "$dir/home/config"
  ssl=xpack.security.http.ssl
  settings+=(xpack.security.enabled=true $ssl.enabled=true $ssl.key=server.key $ssl.certificate=server.crt
    $ssl.certificate_authorities=ca.crt $ssl.client_authentication=optional)
  scheme=https
  if [ -n "${KERBEROS:-}" ]; then
    realm=xpack.security.authc.realms.kerberos.kerb1
    cp "$KERBEROS/http.keytab" "$dir/home/config"
    settings+=($realm.order=0 $realm.keytab.path=http.keytab xpack.license.self_generated.type=trial)
    options+=(-Djava.security.krb5.conf="$KERBEROS/krb5.conf")
  fi
else
  module lifecycle LifecyclePlugin x-pack-core "$kept/lifecycle.jar"
fi
launch "$java/bin/java" "${options[@]}" -Xms512m -Xmx512m --enable-native-access=ALL-UNNAMED -Dorg.apache.logging.log4j.level=INFO \
  -cp "$kept/node:$(matching "$own" | paste -sd:)" ElasticsearchNode "$dir/home" "${settings[@]}"
# The licence becomes active a moment after the first answer.
licensed() { curl -sf --cacert "$dir/certs/ca.crt" -u elastic:secret "$scheme://localhost:$port/_license" | grep -q '"active"'; }
# With a realm of Kerberos, those who say nothing are asked for a ticket as soon as the realm takes part, which is later still.
asks() { [ -z "${KERBEROS:-}" ] || curl -s --cacert "$dir/certs/ca.crt" -o /dev/null -D - "$scheme://localhost:$port" | grep -qi '^www-authenticate: negotiate'; }
# The index of users and roles is made a moment after that by itself, and nobody is let in while its shards are not there: a role
# that is written is in the index.
stores() { [ -z "${KERBEROS:-}" ] || curl -sf --cacert "$dir/certs/ca.crt" -u elastic:secret -o /dev/null -X PUT \
  -H 'content-type: application/json' -d '{"cluster":[]}' "$scheme://localhost:$port/_security/role/ready"; }
usable() { licensed && asks && stores; }
ready "$scheme://localhost:$port" 180 usable
