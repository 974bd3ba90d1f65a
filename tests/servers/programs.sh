#!/usr/bin/env bash
# Programs that tests drive and that are no servers: programs.sh install
. "$(dirname "$0")/lib.sh"
lock
debian logrotate=logrotate gzip=gzip openssl=openssl chromium=chromium \
  lintian=lintian systemd-analyze=systemd dpkg-shlibdeps=dpkg-dev strip=binutils \
  zsh=zsh fish=fish mandoc=mandoc
