#!/usr/bin/env bash
# Exports a mount over NFS 4 by nfs-ganesha, and compares files that libnfs reads with those of the mount: also after the
# kernel has dropped its inodes, and after a source was replaced.
#
#     scripts/stress/nfs.sh VOLFS [FILES]      as root; FILES (default: 60) of tests/data/demo are read each time
#
# Needs ganesha.nfsd and nfs-cat (Debian: nfs-ganesha, nfs-ganesha-vfs, libnfs-utils).
set -euo pipefail
volfs=$(realpath "${1:?the program volfs}") files=${2:-60}
cd "$(dirname "$0")/../.."
for program in ganesha.nfsd nfs-cat; do
    command -v $program >/dev/null || { echo "$program is not there"; exit 1; }
done
work=$(mktemp -d)
server=
end() {
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    [ -z "$server" ] || wait "$server" || true
    "$volfs" umount --lazy "$work/mount" || true
    rm -rf "$work"
}
trap end EXIT
mkdir "$work/mount" "$work/state"
cp -r tests/data/demo "$work/source"
"$volfs" mount "$work/source" "$work/mount" >/dev/null
port=${NFS_PORT:-23049}
cat >"$work/conf" <<CONF
NFS_CORE_PARAM { Protocols = 4; NFS_Port = $port; Enable_NLM = false; Enable_RQUOTA = false; Bind_addr = 127.0.0.1; Enable_UDP = false; ${GANESHA_PLUGINS:+Plugins_Dir = "$GANESHA_PLUGINS";} }
NFSV4 { Graceless = true; RecoveryBackend = fs; RecoveryRoot = "$work/state"; Allow_Numeric_Owners = true; Only_Numeric_Owners = true; }
NFS_KRB5 { Active_krb5 = false; }
EXPORT { Export_Id = 1; Path = $work/mount; Pseudo = /vol; Protocols = 4; Access_Type = RO; Squash = None; SecType = sys; Filesystem_Id = 7.7; Attr_Expiration_Time = 1; FSAL { Name = VFS; } }
CONF
ganesha.nfsd -F -f "$work/conf" -L "$work/log" -p "$work/pid" >/dev/null 2>&1 &
server=$!
for _ in $(seq 100); do
    ! grep -q 'NFS SERVER INITIALIZED' "$work/log" 2>/dev/null || break
    sleep 0.1
done

# same FILE: whether it is the same over NFS.
same() {
    timeout 60 nfs-cat "nfs://127.0.0.1/vol/$1?version=4&nfsport=$port" 2>"$work/why" | cmp -s - "$work/mount/$1"
}

# compare WHAT: compares files at random. The server may learn by an error that its folder is an old one: it has a second try.
wrong=0
compare() {
    local file good=0
    while read -r file; do
        if same "$file" || { sleep 2; same "$file"; }; then
            good=$((good + 1))
        else
            wrong=$((wrong + 1))
            echo "WRONG: $1: $file: $(tail -n 1 "$work/why")"
        fi
    done < <(cd "$work/mount" && find . -type f ! -path './.volfs/*' -printf '%P\n' | shuf -n "$files")
    echo "$1: $good files are the same"
}

compare "at first"
for _ in 1 2 3; do
    echo 2 >/proc/sys/vm/drop_caches
    compare "after the kernel has dropped inodes"
done
cp "$work/source/north.zgy" "$work/.new"
mv "$work/.new" "$work/source/north.zgy"
sleep 5
compare "after a source was replaced"
exit $((wrong > 0))
