#!/usr/bin/env bash
# Fills dist/wheels with what the image is built from, for builds that reach no package index.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p dist/wheels
"${PYTHON:-.venv/bin/python}" -m pip download --quiet --disable-pip-version-check \
    --no-deps --only-binary :all: --python-version 3.11 --require-hashes --dest dist/wheels \
    -r deploy/images/requirements.txt -r deploy/images/build-requirements.txt
