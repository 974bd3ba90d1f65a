# Shared by the scripts of the servers; they read it with `.` and are called as
#   NAME.sh install         download and build what the server needs
#   NAME.sh start DIR PORT  install, start one process with empty data in DIR, wait until it answers; PORT 0: a free one
#   NAME.sh stop DIR        stop just that process
#   NAME.sh again DIR       start it again with the data that it has; with TLS only kube-apiserver
# Downloads are kept in $SKIDDER_SERVERS_DIR (default: .servers in the repository).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
name=$(basename "$0" .sh)
action=${1:-} dir=${2:-} port=${3:-}
PATH=$PATH:/usr/sbin:/sbin

fail() { echo "$name: $*" >&2; exit 1; }
usage() { echo "usage: $0 install | start DIR PORT | stop DIR | again DIR" >&2; exit 2; }
case $action in install|start|stop|again) ;; *) usage;; esac

cache=${SKIDDER_SERVERS_DIR:-$here/../../.servers}
mkdir -p "$cache/$name"
cache=$(cd "$cache" && pwd)
kept=$cache/$name
case $cache in *[[:space:]:]*) fail "the path of SKIDDER_SERVERS_DIR may have no spaces and colons: $cache";; esac

# One installation at a time: package managers and the cache are shared. A started server must not
# inherit the lock, hence 9>&- in `launch`. `lock FILE` is for a long build that touches nothing shared.
lock() { exec 9>"${1:-$cache/lock}"; flock 9; }
unlock() { exec 9>&-; }

# quietly COMMAND...: its output only if it fails
quietly() {
  "$@" >"$kept/install.log" 2>&1 9>&- || { tail -20 "$kept/install.log" >&2; fail "failed: $*"; }
}

# debian PROGRAM=PACKAGE...: installs the packages whose programs are missing
debian() {
  local pair missing=() as_root=()
  for pair in "$@"; do
    command -v "${pair%%=*}" >/dev/null || missing+=("${pair#*=}")
  done
  [ ${#missing[@]} -gt 0 ] || return 0
  command -v apt-get >/dev/null || fail "please install: ${missing[*]}"
  [ "$(id -u)" = 0 ] || as_root=(sudo -n)
  [ "$(id -u)" = 0 ] || sudo -n true 2>/dev/null || fail "please install, as root: apt-get install ${missing[*]}"
  quietly "${as_root[@]}" apt-get update -qq
  # RUNLEVEL=1 keeps packages from starting their services.
  quietly "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq \
    --no-install-recommends -o DPkg::Lock::Timeout=300 "${missing[@]}"
}

# maven POM FOLDER: the runtime jars of POM in FOLDER, which then holds nothing else
maven() {
  debian mvn=maven
  rm -rf "$2"
  quietly mvn -q -B -f "$1" dependency:copy-dependencies -DincludeScope=runtime -DoutputDirectory="$2"
}

# golang FOLDER [FLAG...]: the program of a folder beside the scripts, in $kept/bin
golang() {
  local wanted
  wanted=$({ cat "$here/$1"/*; echo "${@:2}"; } | cksum)
  [ "$(cat "$kept/bin/.$1" 2>/dev/null)" != "$wanted" ] || return 0
  command -v go >/dev/null || debian go=golang-go
  mkdir -p "$kept/bin"
  quietly env -C "$here/$1" GOFLAGS=-mod=readonly go build -trimpath "${@:2}" -o "$kept/bin/$1" .
  echo "$wanted" >"$kept/bin/.$1"
}

running() {
  [ -s "$dir/pid" ] || return 1
  local pid since; read -r pid since <"$dir/pid"
  [ "$(started "$pid")" = "$since" ]
}
started() { ps -o lstart= -p "$1" | tr ' ' _; }

# launch COMMAND...: in the background and in a session of its own; output in DIR/log, pid in DIR/pid
launch() {
  printf '%q ' "$@" >"$dir/command"
  setsid "$@" >"$dir/log" 2>&1 </dev/null 9>&- &
  echo "$! $(started $!)" >"$dir/pid"
}

# ready URL SECONDS COMMAND...: waits until COMMAND succeeds, then prints pid and URL
ready() {
  local url=$1 limit=$2 began=$SECONDS; shift 2
  until running && "$@" >/dev/null 2>&1; do
    running || { tail -5 "$dir/log" >&2; fail "it ended; see $dir/log"; }
    [ $((SECONDS - began)) -lt "$limit" ] || { stop; fail "no answer in $limit s; see $dir/log"; }
    sleep 0.2
  done
  echo "$url" >"$dir/url"
  echo "pid=$(cut -d' ' -f1 "$dir/pid") url=$url"
}
answers_tcp() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

# Sets `port` to a port that nobody has and with it the 15 behind it. They are below those that the system gives to
# clients: a server may take seconds to start, and until then one of those could be taken. Each call goes on behind the
# one before it, so that servers that start at the same time get different ones.
pick_port() {
  local low block try
  read -r low _ </proc/sys/net/ipv4/ip_local_port_range
  [ "$low" -ge 12000 ] || low=32768
  for try in {1..200}; do
    exec 8>"$cache/ports.lock"; flock 8
    block=$(( ($(cat "$cache/ports" 2>/dev/null || echo $RANDOM) + 1) % ((low - 10000) / 16) ))
    echo "$block" >"$cache/ports"
    exec 8>&-
    port=$((10000 + 16 * block))
    answers_tcp "$port" || return 0
  done
  fail "no port is free below $low"
}

stop() {
  running || { rm -f "$dir/pid"; return 0; }
  local pid i; pid=$(cut -d' ' -f1 "$dir/pid")
  kill "$pid"
  for i in $(seq 50); do running || break; sleep 0.2; done
  if running; then kill -9 "$pid"; fi
  rm -f "$dir/pid"
}

debian ps=procps flock=util-linux setsid=util-linux curl=curl
if [ "$action" != install ]; then
  [ -n "$dir" ] || usage
  mkdir -p "$dir"; dir=$(cd "$dir" && pwd)
  case $dir in /|*[[:space:]:]*) fail "DIR must be a folder of its own, without spaces and colons in its path";; esac
fi
if [ "$action" = stop ]; then stop; exit; fi
if [ "$action" = again ]; then
  if running; then fail "it is running in $dir"; fi
  url=$(cat "$dir/url")
  eval "launch $(cat "$dir/command")"
  case $url in
    https*) ready "$url" 180 curl -sf --cacert "$dir/certs/ca.crt" "$url/readyz";;
    http*) ready "$url" 180 curl -sf "$url/_cluster/health?wait_for_status=yellow&timeout=1s";;
    kafka*) ready "$url" 180 grep -q 'Kafka Server started' "$dir/log";;
    *) ready "$url" 30 answers_tcp "${url##*:}";;
  esac
  exit
fi
if [ "$action" = start ]; then
  [ -n "$port" ] || usage
  if running; then fail "already running in $dir, pid $(cut -d' ' -f1 "$dir/pid")"; fi
  if [ "$port" = 0 ]; then pick_port; fi
  if answers_tcp "$port"; then fail "port $port is taken"; fi
fi
