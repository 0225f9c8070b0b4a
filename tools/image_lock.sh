#!/usr/bin/env bash
# Writes what the image is built from, in the versions of constraints.txt.
set -euo pipefail
cd "$(dirname "$0")/.."
uv="${BIN:-.venv/bin}/uv"
# For the image's Python only, without markers: whatever pip runs here must fetch the same files.
options=(--quiet --python-version 3.11 --python-platform linux --constraint constraints.txt
    --generate-hashes --no-annotate --no-header --no-emit-index-url --no-emit-find-links)
"$uv" pip compile "${options[@]}" --extra container -o deploy/images/requirements.txt pyproject.toml
echo hatchling | "$uv" pip compile "${options[@]}" -o deploy/images/build-requirements.txt -
