#!/usr/bin/env bash
# softflowd of Debian, which the tests of the input `netflow` call themselves: it exports the flows of a capture and ends.
. "$(dirname "$0")/lib.sh"
lock
debian softflowd=softflowd
unlock
