#!/usr/bin/env bash
# Installs the Debian packages that tests and lints use, or tells what is missing.
# Never starts a daemon: the tests start their own servers and end them.
set -euo pipefail

PACKAGES=()
command -v etcd >/dev/null || PACKAGES+=(etcd-server)
command -v promtool >/dev/null || PACKAGES+=(prometheus)
PATH=$PATH:/sbin ldconfig -p | grep 'libgomp\.so\.1' >/dev/null || PACKAGES+=(libgomp1)

deny_daemons() {
    local policy=/usr/sbin/policy-rc.d
    [[ -e $policy ]] && return
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod 755 "$policy"
    trap "rm -f $policy" EXIT
}

if ((${#PACKAGES[@]} == 0)); then
    exit 0
fi
if [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
    echo "setup: missing: ${PACKAGES[*]} (Debian: sudo apt-get install --no-install-recommends ${PACKAGES[*]})." >&2
    echo "setup: the wheel's etcd serves a demo; tests that kill etcd need 3.4.22 or a later 3.4." >&2
    echo "setup: libgomp1 is what LightGBM needs; forecasts of demand do without where it is missing." >&2
    echo "setup: promtool, of prometheus, checks the alert rules in make lint." >&2
    exit 0
fi
deny_daemons
export DEBIAN_FRONTEND=noninteractive
apt-get -qq update
apt-get -qq install -y --no-install-recommends "${PACKAGES[@]}" >/dev/null
