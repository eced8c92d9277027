#!/usr/bin/env bash
# Build both images on one Debian machine without a Docker daemon or a registry, and build a model in the result.
# The base is bootstrapped from Debian's packages; the kits of the target `sdk` are stand-ins (tests/docker/fake_sdk.py).
#
#   docker/build-local.sh [FOLDER]     FOLDER is for everything in the making; a temporary one when it is left out
#
# Needs root, buildah and mmdebstrap (apt-get install --no-install-recommends buildah mmdebstrap), python3, 6 GB of disk
# and the network. MODEL and SOC name what is built (silero-vad, SM8650). KEEP=1 leaves the images in FOLDER. DRIVER is
# buildah's storage driver: overlay, and vfs (8 GB) where that does not work, as in most containers.
set -euo pipefail

repository=$(cd "$(dirname "$0")/.." && pwd)
model=${MODEL:-silero-vad}
soc=${SOC:-SM8650}
certificates=/etc/ssl/certs/ca-certificates.crt

say() { printf '\n== %s (%d s)\n' "$1" "$SECONDS"; }
stop() { printf 'build-local: %s\n' "$1" >&2; exit 1; }

[ "$(id -u)" = 0 ] || stop "needs root: mmdebstrap and the chroot isolation of buildah do"
for program in buildah mmdebstrap python3; do
    command -v "$program" > /dev/null || stop "$program is missing: apt-get install --no-install-recommends $program"
done

if [ $# -gt 0 ]; then
    mkdir -p "$1"
    work=$(cd "$1" && pwd)  # buildah's folders must be absolute
    made=no
else
    work=$(mktemp -d --tmpdir qnn-forge-image-XXXXXX)
    made=yes
fi
need_kilobytes() {
    local free
    free=$(df --output=avail -k "$work" | tail -1)
    [ "$free" -ge "$1" ] || stop "$work has $free kB free; $1 are needed"
}

need_kilobytes 6000000
mkdir -p "$work/tmp"
export TMPDIR="$work/tmp"

driver=${DRIVER:-overlay}
b() { buildah --root "$work/store" --runroot "$work/run" --storage-driver "$driver" "$@"; }

clean_up() {
    status=$?
    if [ "${KEEP:-}" = 1 ]; then
        printf '\nthe images are kept: buildah --root %s/store --runroot %s/run --storage-driver %s images\n' \
            "$work" "$work" "$driver"
    else
        b rm --all > /dev/null 2>&1 || true
        b rmi --all --force > /dev/null 2>&1 || true
        rm -rf "$work/store" "$work/run" "$work/kits" "$work/dist" "$work/tmp"
        if [ "$made" = yes ]; then rm -rf "$work"; fi
    fi
    exit "$status"
}
trap clean_up EXIT

# Files that the build and the containers see: the machine's certificates, for a proxy that inspects TLS.
mounts=()
if [ -f "$certificates" ]; then mounts=(--volume "$certificates:$certificates:ro"); fi

if ! b from scratch > /dev/null 2>&1; then
    driver=vfs  # slower, and a copy of the image for every layer, but it works in any container
    rm -rf "$work/store" "$work/run"
fi
b rm --all > /dev/null
layers=true  # keep what is built, so that the second target goes on from the first
if [ "$driver" = vfs ]; then
    layers=false
    need_kilobytes 8000000
fi

say "base: Debian bookworm with Python 3.11"
if [ ! -f "$work/base.tar" ]; then
    mmdebstrap --quiet --variant=minbase --include=ca-certificates,python3-venv bookworm "$work/base.tar" \
        /etc/apt/sources.list.d/debian.sources
fi
container=$(b from scratch)
b add --quiet "$container" "$work/base.tar" / > /dev/null
b commit --quiet --rm "$container" localhost/bookworm-python:local > /dev/null

build() {  # target, further options
    local target=$1
    shift
    b build --isolation chroot --pull=never --layers="$layers" "${mounts[@]}" --file "$repository/docker/Dockerfile" \
        --build-arg BASE=localhost/bookworm-python:local --target "$target" --tag "localhost/qnn-forge:$target" \
        "$@" "$repository"
}

inside() {  # image, command: run it as the image's user
    local image=$1 container status=0
    shift
    container=$(b from --pull=never "localhost/qnn-forge:$image")
    b run --isolation chroot "${mounts[@]}" --env "SSL_CERT_FILE=$certificates" \
        --volume "$repository/models:/forge/models:ro" --volume "$work/dist:/forge/dist" \
        "$container" -- "$@" || status=$?
    b rm "$container" > /dev/null
    return "$status"
}

# The user of the image must be able to write bundles here.
install --directory --owner=1001 --group=1001 "$work/dist"

say "target pip"
build pip > "$work/pip.log" 2>&1 || { tail -40 "$work/pip.log" >&2; stop "the target pip does not build"; }
b images --filter label=io.qnn-forge.toolchain --format '{{.Name}}:{{.Tag}} {{.Size}}'

say "target pip: who runs, and what was left behind"
[ "$(inside pip id -u)" = 1001 ] || stop "the image does not run as its user"
inside pip bash -c 'test -w /store && ! test -w /opt/qnn-forge && ! test -e ~/.cache && ! test -e /root/.cache' \
    || stop "folders of the image are not as they should be"
[ -z "$(inside pip find /tmp /store /forge -mindepth 1 -not -path '/forge/*')" ] || stop "files were left in the image"

say "target pip: qnn-forge doctor"
inside pip qnn-forge doctor

say "target pip: qnn-forge build $model --soc $soc"
inside pip qnn-forge build "$model" --soc "$soc" --out dist
(cd "$work/dist" && find . -name '*.bin' -exec sha256sum {} +)
rm -rf "${work:?}/dist/"*

say "target sdk: refused without the licence word"
if build sdk > "$work/refused.log" 2>&1; then stop "the target sdk was built without ACCEPT_QAIRT_LICENSE"; fi
grep -q '^fetch_sdk: the licence was not accepted' "$work/refused.log" || stop "no clear message: see $work/refused.log"
grep '^fetch_sdk' "$work/refused.log"

say "target sdk, with stand-ins for the kits"
arguments=()
while read -r argument; do arguments+=(--build-arg "$argument"); done \
    < <(python3 "$repository/tests/docker/fake_sdk.py" "$work/kits" --seen-as /kits)
build sdk --build-arg ACCEPT_QAIRT_LICENSE=yes --volume "$work/kits:/kits:ro" "${arguments[@]}" > "$work/sdk.log" 2>&1 \
    || { tail -40 "$work/sdk.log" >&2; stop "the target sdk does not build"; }
grep 'unpacked into' "$work/sdk.log"
if b inspect --type image localhost/qnn-forge:sdk | grep -q 'file:///kits'; then stop "an address is in the image"; fi

say "target sdk: qnn-forge doctor"
inside sdk qnn-forge doctor
inside sdk /opt/kits/qairt/bin/x86_64-linux-clang/qnn-context-binary-generator

say "done"
