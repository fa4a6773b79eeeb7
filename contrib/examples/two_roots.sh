#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# Two workers build one graph, each in a root of its own: contrib/examples/two_roots.sh [PYTHON]
# As in two containers, all files of the system are read-only, and what a worker can write is memory that only it sees. They have
# nothing in common but an object store, which is moto's S3 server on the loopback here. Needs gnnd[s3] and moto[server] in
# that Python, and a system that lets its user make namespaces.
set -euo pipefail
python=${1:-python3}
here=$(mktemp -d)
mkdir "$here/own"
server='' workers=()
end() {
    kill $server "${workers[@]}" 2>/dev/null || true
    rm -rf "$here"
}
trap end EXIT

"$python" -m moto.server -p 0 >"$here/server.log" 2>&1 &
server=$!
url=''
until [ -n "$url" ]; do # it takes a port that is free, and tells which
    sleep 0.1
    if ! kill -0 $server; then cat "$here/server.log" >&2 && exit 1; fi
    url=$(sed -n 's|.*Running on \(http://127[.0-9]*:[0-9]*\).*|\1|p' "$here/server.log")
done
export AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test AWS_DEFAULT_REGION=us-east-1 FSSPEC_S3_ENDPOINT_URL=$url

"$python" - <<'END'
import fsspec, numpy as np
x = np.random.default_rng(1).normal(size=(20_000, 6)).astype(np.float32) @ np.ones((6, 24), np.float32).cumsum(1)
store = fsspec.filesystem("s3")
store.mkdir("data")
with store.open("s3://data/base.npy", "wb") as file:
    np.save(file, x)
END

in_a_root() { # a command, with its own memory for what it writes
    # shellcheck disable=SC2016  # expanded inside
    unshare --map-root-user --mount --pid --fork --mount-proc -- bash -c '
        set -e
        own=$1 && shift
        mount -t tmpfs tmpfs "$own"
        for point in $(findmnt -rno TARGET); do
            case $point in /proc* | /sys* | /dev* | "$own") ;; *) mount -o remount,bind,ro "$point" ;; esac
        done
        cd "$own"
        if touch "$own/../mark" 2>/dev/null; then echo "two_roots.sh: it can write outside" >&2 && exit 1; fi
        export HOME=$own TMPDIR=$own
        exec "$@"' bash "$here/own" "$@"
}

for _ in 1 2; do
    in_a_root "$python" -m gnnd worker s3://data/graph --base s3://data/base.npy --shards 6 -k 10 --device cpu --threads 1 &
    workers+=($!)
done
for worker in "${workers[@]}"; do wait "$worker"; done
workers=()

"$python" - "$here/graph" <<'END'
import sys, gnnd.distributed
gnnd.distributed.fetch("s3://data/graph", sys.argv[1])
graph = gnnd.load(sys.argv[1])
print(f"{graph.n} x {graph.k} in {graph.shards} shards, recall {graph.recall:.4f}")
END
