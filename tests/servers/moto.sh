#!/usr/bin/env bash
# moto, a look-alike of Amazon in Python (github.com/getmoto/moto): S3, SQS, STS and CloudWatch Logs at one port, in memory.
# It takes any access key. POST to /moto-api/reset empties it.
. "$(dirname "$0")/lib.sh"

lock
wanted=$(cat "$here/moto/requirements.txt" <(python3 --version 2>&1) | cksum)
if [ "$(cat "$kept/python/.moto" 2>/dev/null)" != "$wanted" ]; then
  python3 -m pip --version >/dev/null 2>&1 || debian python3=python3 pip3=python3-pip
  rm -rf "$kept/python"
  quietly python3 -m pip install --quiet --no-deps --require-hashes --target "$kept/python" -r "$here/moto/requirements.txt"
  echo "$wanted" >"$kept/python/.moto"
fi
unlock
[ "$action" = start ] || exit 0

launch env PYTHONPATH="$kept/python" python3 -m moto.server -H 127.0.0.1 -p "$port"
ready "http://127.0.0.1:$port" 60 curl -sf "http://127.0.0.1:$port/moto-api/"
