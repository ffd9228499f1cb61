#!/bin/bash
# verify_unit.sh UNIT - systemd-analyze has nothing to say about the unit; 77 where there is none.
set -euo pipefail
if ! command -v systemd-analyze > /dev/null; then
  echo "skipped: no systemd-analyze"
  exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
# A program that exists, and a user that does: both come with the installation.
sed -e 's|@H5MIRRORD@|/bin/true|' -e 's/^User=.*/User=daemon/' -e 's/^Group=.*/Group=daemon/' \
  -e '/^Documentation=man:/d' "$1" > "$scratch/h5mirrord.service"
said=$(systemd-analyze verify --man=no "$scratch/h5mirrord.service" 2>&1) || {
  printf '%s\n' "$said"
  exit 1
}
# Lines about other units of this machine are not ours.
if grep -F h5mirrord <<< "$said"; then exit 1; fi
echo "clean"
