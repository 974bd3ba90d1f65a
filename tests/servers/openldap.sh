#!/usr/bin/env bash
# OpenLDAP of Debian (slapd), with a handful of people below dc=example,dc=test. With SECURITY=1 over TLS
# (certificates in DIR/certs). Reading needs the user cn=admin,dc=example,dc=test with the password `secret`.
. "$(dirname "$0")/lib.sh"
lock
debian slapd=slapd openssl=openssl
unlock
[ "$action" = start ] || exit 0

rm -rf "$dir/data"; mkdir -p "$dir/data"
url=ldap://127.0.0.1:$port tls=
if [ "${SECURITY:-0}" = 1 ]; then
  "$here/certs.sh" "$dir/certs"
  url=ldaps://localhost:$port
  tls="TLSCACertificateFile $dir/certs/ca.crt
TLSCertificateFile $dir/certs/server.crt
TLSCertificateKeyFile $dir/certs/server.key"
fi
cat >"$dir/slapd.conf" <<CONF
include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
modulepath /usr/lib/ldap
moduleload back_mdb
$tls
database mdb
suffix "dc=example,dc=test"
rootdn "cn=admin,dc=example,dc=test"
rootpw secret
directory $dir/data
access to * by * auth
CONF
quietly slapadd -f "$dir/slapd.conf" -l "$here/openldap/people.ldif"
# -d keeps it in the foreground; 256 says what is asked.
launch slapd -f "$dir/slapd.conf" -h "$url" -d 256
ready "$url" 30 answers_tcp "$port"
