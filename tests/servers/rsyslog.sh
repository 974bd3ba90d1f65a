#!/usr/bin/env bash
# rsyslog of Debian: takes lines over TCP and forwards them. SETTINGS is `HOST:PORT MODE`, where MODE is `lines`
# (RFC 3164, a line each), `octets` (RFC 5424, with octet counting) or `tls` (the same over TLS, unchecked).
. "$(dirname "$0")/lib.sh"
lock
debian rsyslogd=rsyslog
if [[ ${SETTINGS:-} == *tls ]] && ! ls /usr/lib/*/rsyslog/lmnsd_ossl.so >/dev/null 2>&1; then
  debian no-such-program=rsyslog-openssl
fi
unlock
[ "$action" = start ] || exit 0

read -r target mode <<<"${SETTINGS:-127.0.0.1:1 lines}"
octets='TCP_Framing="octet-counted" Template="RSYSLOG_SyslogProtocol23Format"'
case $mode in
  lines) form= ;;
  octets) form=$octets ;;
  tls) form="$octets StreamDriver=\"ossl\" StreamDriverMode=\"1\" StreamDriverAuthMode=\"anon\"" ;;
  *) fail "no such mode: $mode" ;;
esac
cat >"$dir/rsyslog.conf" <<CONF
global(workDirectory="$dir")
module(load="imtcp")
input(type="imtcp" address="127.0.0.1" port="$port")
action(type="omfwd" target="${target%:*}" port="${target##*:}" protocol="tcp" $form
       action.resumeRetryCount="-1" action.resumeInterval="1" queue.type="LinkedList")
CONF
launch rsyslogd -n -f "$dir/rsyslog.conf" -i NONE
ready "syslog://127.0.0.1:$port" 20 answers_tcp "$port"
