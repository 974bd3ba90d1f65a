#!/usr/bin/env bash
# A realm of MIT Kerberos of Debian (krb5-kdc), EXAMPLE.TEST: the user `shipper` with the password `secret` and with keys
# in DIR/shipper.keytab, the server HTTP/localhost with keys in DIR/http.keytab. Clients and servers read DIR/krb5.conf.
# Also installs what a build with Kerberos needs: libclang and the headers.
. "$(dirname "$0")/lib.sh"
lock
debian krb5kdc=krb5-kdc kadmin.local=krb5-admin-server krb5-config=libkrb5-dev
# libclang has no program of its own.
ls /usr/lib/llvm-*/lib/libclang*.so* >/dev/null 2>&1 && ls /usr/lib/llvm-*/include/clang-c/Index.h >/dev/null 2>&1 \
  || debian no-such-program=libclang-dev
unlock
[ "$action" = start ] || exit 0

mkdir -p "$dir"
rm -f "$dir"/principal* "$dir"/*.keytab "$dir/stash"
cat >"$dir/krb5.conf" <<CONF
[libdefaults]
  default_realm = EXAMPLE.TEST
  default_keytab_name = FILE:$dir/http.keytab
  dns_lookup_kdc = false
  dns_lookup_realm = false
  rdns = false
  udp_preference_limit = 1
[realms]
  EXAMPLE.TEST = {
    kdc = 127.0.0.1:$port
  }
[domain_realm]
  localhost = EXAMPLE.TEST
CONF
cat >"$dir/kdc.conf" <<CONF
[kdcdefaults]
  kdc_listen = ""
  kdc_tcp_listen = 127.0.0.1:$port
[realms]
  EXAMPLE.TEST = {
    database_name = $dir/principal
    key_stash_file = $dir/stash
    acl_file = $dir/acl
  }
CONF
export KRB5_CONFIG=$dir/krb5.conf KRB5_KDC_PROFILE=$dir/kdc.conf
quietly kdb5_util create -r EXAMPLE.TEST -s -P master
quietly kadmin.local -r EXAMPLE.TEST -q 'addprinc -pw secret shipper'
quietly kadmin.local -r EXAMPLE.TEST -q "ktadd -k $dir/shipper.keytab -norandkey shipper"
quietly kadmin.local -r EXAMPLE.TEST -q 'addprinc -randkey HTTP/localhost'
quietly kadmin.local -r EXAMPLE.TEST -q "ktadd -k $dir/http.keytab HTTP/localhost"
launch env KRB5_CONFIG="$KRB5_CONFIG" KRB5_KDC_PROFILE="$KRB5_KDC_PROFILE" krb5kdc -n -r EXAMPLE.TEST
ready "kerberos://127.0.0.1:$port" 30 answers_tcp "$port"
