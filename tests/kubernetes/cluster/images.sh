#!/usr/bin/env bash
# Images with no image registry: a Python base made from Debian's packages, and
# the pause image, both in buildah's store and as archives in $IMAGES.
#   images.sh                                pause.tar and the base
#   images.sh TAG CONTAINERFILE DIR [ARG…]   an image on that base, archived; ARGs go to buildah
# Needs buildah, mmdebstrap, busybox-static.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
IMAGES=${IMAGES:-$here/images}
export BUILDAH_ISOLATION=chroot
mkdir -p "$IMAGES"

save() { rm -f "$IMAGES/$2.tar"; buildah push -q "$1" "oci-archive:$IMAGES/$2.tar:$1"; }

if (($# == 0)); then
  c=$(buildah from scratch)
  buildah copy -q "$c" /bin/busybox /bin/busybox
  buildah config --entrypoint '["/bin/busybox","sleep","2147483647"]' "$c"
  buildah commit -q --rm "$c" localhost/pause:1
  save localhost/pause:1 pause
  base=$(mktemp -d)
  trap 'rm -rf "$base"' EXIT
  mmdebstrap --mode=root --variant=minbase --include=python3,python3-venv,ca-certificates \
    bookworm "$base/base.tar" /etc/apt/sources.list.d/debian.sources
  c=$(buildah from scratch)
  buildah add -q "$c" "$base/base.tar" /
  # Whom this machine believes when it fetches packages, the image believes while it is built.
  buildah copy -q "$c" /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
  # `FROM python:3.11-slim` finds this one, so the project's own file builds as it is.
  buildah commit -q --rm "$c" localhost/python:3.11-slim
else
  buildah bud -q --layers --pull-never "${@:4}" -t "$1" -f "$2" "$3"
  save "$1" "$(tr '/:' '__' <<<"$1")"
fi
