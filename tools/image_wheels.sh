#!/usr/bin/env bash
# Fills dist/wheels with what the image is built from, for builds that reach no package index.
set -euo pipefail
cd "$(dirname "$0")/.."
locks=(deploy/images/requirements.txt deploy/images/build-requirements.txt)
stamp="$(sha256sum "${locks[@]}")"
[[ "$(cat dist/wheels/.locks 2>/dev/null)" == "$stamp" ]] && exit 0
rm -rf dist/wheels
mkdir -p dist/wheels
"${PYTHON:-.venv/bin/python}" -m pip download --quiet --disable-pip-version-check \
    --no-deps --only-binary :all: --python-version 3.11 --require-hashes --dest dist/wheels \
    -r "${locks[0]}" -r "${locks[1]}"
echo "$stamp" >dist/wheels/.locks
