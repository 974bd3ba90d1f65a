#!/usr/bin/env bash
# The API server of Kubernetes 1.36 with etcd 3.6, over TLS (certificates in DIR/certs). The bearer token `secret` may do
# everything; all others have what RBAC gives them. DIR/kubeconfig is for kubectl. etcd listens without TLS at the next
# port. SETTINGS adds to the command line of kube-apiserver. Its first build takes minutes of CPU.
. "$(dirname "$0")/lib.sh"
program=$kept/bin/kube-apiserver
version=k8s.io/component-base/version

lock
debian openssl=openssl go=golang-go
unlock
# Others install meanwhile.
lock "$kept/lock"
# Without `-s -w` the linker writes a third more; the version is what a release says.
golang kube-apiserver -ldflags "-s -w -X $version.gitVersion=v1.36.3 -X $version.gitMajor=1 -X $version.gitMinor=36"
unlock
[ "$action" = start ] || exit 0

rm -rf "$dir/etcd"
"$here/certs.sh" "$dir/certs"
[ -e "$dir/accounts.key" ] || openssl genrsa -out "$dir/accounts.key" 2048 2>/dev/null
echo 'secret,admin,admin,system:masters' >"$dir/tokens.csv"
cat >"$dir/kubeconfig" <<CONFIG
{"apiVersion": "v1", "kind": "Config", "current-context": "test",
 "contexts": [{"name": "test", "context": {"cluster": "test", "user": "admin"}}],
 "clusters": [{"name": "test", "cluster": {"server": "https://localhost:$port",
               "certificate-authority": "$dir/certs/ca.crt"}}],
 "users": [{"name": "admin", "user": {"token": "secret"}}]}
CONFIG
options=(
  --bind-address 127.0.0.1 --secure-port "$port" --etcd-servers "http://127.0.0.1:$((port + 1))"
  # Nothing routes to it: no address of it is in the cluster.
  --endpoint-reconciler-type none --service-cluster-ip-range 10.96.0.0/24
  --cert-dir "$dir/certs" --tls-cert-file "$dir/certs/server.crt" --tls-private-key-file "$dir/certs/server.key"
  --client-ca-file "$dir/certs/ca.crt" --token-auth-file "$dir/tokens.csv"
  --service-account-issuer https://localhost --service-account-key-file "$dir/accounts.key"
  --service-account-signing-key-file "$dir/accounts.key"
  # No controller makes the account that this plugin gives to pods.
  --authorization-mode RBAC --disable-admission-plugins ServiceAccount
)
# shellcheck disable=SC2086 # several words are meant
launch "$program" "$dir/etcd" "$((port + 1))" "${options[@]}" ${SETTINGS:-}
ready "https://localhost:$port" 120 curl -sf --cacert "$dir/certs/ca.crt" -H 'authorization: Bearer secret' \
  "https://localhost:$port/readyz"
