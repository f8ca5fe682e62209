#!/usr/bin/env bash
# Shares a mount by Samba, and compares files that smbclient gets with those of the mount: also parts of them at once, and
# after a source was replaced; and tries to write.
#
#     scripts/stress/samba.sh VOLFS [FILES]      as root; FILES (default: 60) of tests/data/demo are read each time
#
# Needs smbd and smbclient (Debian: samba, smbclient).
set -euo pipefail
volfs=$(realpath "${1:?the program volfs}") files=${2:-60}
cd "$(dirname "$0")/../.."
for program in smbd smbclient; do
    command -v $program >/dev/null || { echo "$program is not there"; exit 1; }
done
work=$(mktemp -d)
server=
end() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    [ -z "$server" ] || { wait "$server"; } 2>/dev/null || true
    "$volfs" umount --lazy "$work/mount" || true
    rm -rf "$work"
}
trap end EXIT
mkdir "$work/mount" "$work/state"
cp -r tests/data/demo "$work/source"
"$volfs" mount "$work/source" "$work/mount" >/dev/null
port=${SMB_PORT:-23445}
cat >"$work/conf" <<CONF
[global]
smb ports = $port
interfaces = 127.0.0.1
bind interfaces only = yes
disable netbios = yes
load printers = no
map to guest = Bad User
private dir = $work/state
lock directory = $work/state
state directory = $work/state
cache directory = $work/state
pid directory = $work/state
ncalrpc dir = $work/state
[vol]
path = $work/mount
guest ok = yes
force user = root
read only = no
CONF
smbd --foreground --configfile="$work/conf" --log-basename="$work" >/dev/null 2>&1 &
server=$!
# smb COMMAND: what smbclient says to it.
smb() {
    timeout 120 smbclient //127.0.0.1/vol -N -p "$port" -s "$work/conf" -c "$1" 2>&1
}
for _ in $(seq 100); do
    ! smb ls >/dev/null || break
    sleep 0.1
done

# compare WHAT: compares files at random, which four clients get at once.
wrong=0
compare() {
    local file at good=0
    rm -rf "$work/got"
    mkdir "$work/got"
    (cd "$work/mount" && find . -type f ! -path './.volfs/*' -printf '%P\n' | shuf -n "$files") >"$work/list"
    while read -r file; do
        while [ "$(jobs -rp | wc -l)" -gt 4 ]; do wait -n || true; done
        smb "get \"${file//\//\\}\" \"$work/got/${file//\//%2F}\"" >/dev/null &
    done <"$work/list"
    while [ "$(jobs -rp | wc -l)" -gt 1 ]; do wait -n || true; done
    while read -r file; do
        at=$work/got/${file//\//%2F}
        if cmp -s "$at" "$work/mount/$file"; then good=$((good + 1)); else
            wrong=$((wrong + 1))
            echo "WRONG: $1: $file"
        fi
    done <"$work/list"
    echo "$1: $good files are the same"
}

compare "at first"
compare "once more"
cp "$work/source/north.zgy" "$work/.new"
mv "$work/.new" "$work/source/north.zgy"
sleep 5
compare "after a source was replaced"
for command in "put README.md x" "mkdir y" "rm north.zgy/dataset.json"; do
    said=$(smb "$command" || true)
    if [[ $said != *NT_STATUS_* ]]; then
        wrong=$((wrong + 1))
        echo "WRONG: $command was not refused"
    fi
done
exit $((wrong > 0))
