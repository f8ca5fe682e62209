"""Benchmarks mounts of an object store against a bare client of the same store, and against openvds.

Called as `scripts/bench store [--edge N] [--rounds N]`. The server is s3s-fs on this machine, in a network namespace of
its own where loopback acknowledges at once (as root; otherwise small requests wait 40 ms for each other, and figures
mean little). All programs take turns, and each has a fresh mount or process. Server and client share the processors.
"""

import argparse
import contextlib
import json
import os
import secrets
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path

import figures
import processor_time
from mounts import Failed, Volfs, run
from readers import Array, Tools, dd, into_array
from views import middle, table
from volumes import touch_memory

HERE = Path(__file__).parent
BUCKET = "bench"
METHODS = ("None", "Zip", "Wavelet")
EDGE_OF_BRICK = 64
ROUND_TRIP = 50
MEGABITS = 1000


def free_port():
    """Returns a port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def in_a_network_of_its_own():
    """Starts this program again where loopback acknowledges at once, unless it is there already or may not be."""
    if os.geteuid() != 0 or os.environ.get("VOLFS_BENCH_NETWORK"):
        return
    os.environ["VOLFS_BENCH_NETWORK"] = "1"
    route = "ip route replace local {} dev lo proto kernel scope host src 127.0.0.1 table local quickack 1"
    setup = "; ".join(["ip link set lo up", *map(route.format, ("127.0.0.0/8", "127.0.0.1"))])
    os.execvp("unshare", ["unshare", "-n", "sh", "-ec", f'{setup}; exec "$@"', "sh", sys.executable, *sys.argv])


@contextlib.contextmanager
def process(*command, answers):
    """Runs a server until the end of the block; it must answer on a port."""
    server = subprocess.Popen([str(word) for word in command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + 30
        while not is_up(answers):
            if server.poll() is not None or time.monotonic() > end:
                raise Failed(f"{Path(str(command[0])).name} does not start")
            time.sleep(0.05)
        yield server.pid
    finally:
        server.terminate()
        server.wait()


def is_up(port):
    """Returns whether a server answers at all."""
    try:
        urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5)
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def use(port, keys):
    """Sets the environment of all clients to a server."""
    url = f"http://127.0.0.1:{port}"
    os.environ |= {"AWS_ENDPOINT_URL": url, "AWS_ACCESS_KEY_ID": keys[0], "AWS_SECRET_ACCESS_KEY": keys[1],
                   "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true", "AWS_EC2_METADATA_DISABLED": "true",
                   "OPENVDS_CONNECTION": f"Region=us-east-1;EndpointOverride={url};AccessKeyId={keys[0]};SecretKey={keys[1]}"}


@dataclass(frozen=True)
class Used:
    """What one reading took: seconds, and seconds of processor time of each party."""

    seconds: float
    server: float
    client: float
    reader: float = 0.0
    requests: int = 0

    def busy(self):
        """Returns the part of the machine's processor time that the parties took while it lasted."""
        return (self.server + self.client + self.reader) / (self.seconds * os.cpu_count())


class Bench:
    """One volume in the store, and its readers. `server` is the process of the store."""

    def __init__(self, tools, bare, folder, method, server):
        self.tools, self.bare, self.method, self.server = tools, bare, method, server
        self.key = f"{tools.edge}/{method.lower()}"
        self.url, self.folder = f"s3://{BUCKET}/{self.key}", folder / BUCKET / self.key
        self.size = 4 * tools.edge**3
        self.figures = []

    def note(self, network, axis, chunks, openvds=(), **runs):
        """Keeps the figures of a row; `axis` is that of a slice, or None for the whole volume."""
        runs = {name: [asdict(run) for run in of_name] for name, of_name in runs.items()}
        self.figures.append({"volume": f"VDS {self.method}", "network": network, "axis": axis, "chunks": chunks, "openvds": list(openvds), **runs})

    def make(self):
        """Writes the volume with openvds, unless it is there."""
        if not (self.folder / "LayerStatus").exists():
            run(sys.executable, HERE / "make_data.py", "vds", self.url, self.tools.edge, f"method={self.method}", "tolerance=1")

    def keys(self, axis=None):
        """Returns the keys of the chunks that have bytes: all, or those of the middle slice across an axis."""
        along = -(-self.tools.edge // EDGE_OF_BRICK)
        layer = self.folder / "Dimensions_012LOD0"
        found = []
        for number in range(along**3):
            at = (number // along**2, number // along % along, number % along)
            wanted = axis is None or at[axis] == self.tools.edge // 2 // EDGE_OF_BRICK
            if wanted and (layer / str(number)).exists() and (layer / str(number)).stat().st_size:
                found.append(f"{self.key}/{layer.name}/{number}")
        return found

    def by_bare_client(self, axis=None, in_flight=8):
        """Fetches the chunks with nothing but the client."""
        server, client = processor_time.of_process(self.server), processor_time.of_children()
        done = subprocess.run([self.bare, BUCKET, str(in_flight)], input="\n".join(self.keys(axis)), capture_output=True, text=True)
        if done.returncode:
            raise Failed(f"the bare client: {done.stderr.strip()}")
        return Used(float(done.stdout.split()[0]), processor_time.of_process(self.server) - server,
                    processor_time.of_children() - client)

    def by_openvds(self, what):
        """Reads with openvds; returns seconds."""
        return json.loads(run(sys.executable, HERE / "peer_openvds.py", self.url, what)[0].splitlines()[-1])["seconds"]

    def by_volfs(self, axis=None, *options):
        """Reads with a fresh mount."""
        touch_memory(3 * self.size + (64 << 20))
        with Volfs(self.tools, self.url, *options) as mount:
            layer = mount.layer(self.method.lower())
            array, pid = Array.of(layer), mount.status()["pid"]
            of_file = array.slice(axis) if axis is not None else None
            server, client, asked = processor_time.of_process(self.server), processor_time.of_mount(pid), requests(mount)
            if of_file is None:
                children = processor_time.of_children()
                seconds = dd(array.raw, array.size)
                reader = processor_time.of_children() - children
            else:
                read = into_array(*of_file)
                seconds, reader = read["seconds"], read["processor"]
            return Used(seconds, processor_time.of_process(self.server) - server, processor_time.of_mount(pid) - client, reader,
                        requests(mount) - asked)


def requests(mount):
    """Returns how many requests a mount has sent to its store."""
    return mount.status()["store"]["requests"]


def near(bench):
    """Yields rows: volfs, the bare client and openvds in turn."""
    for what in (None, 0, 1, 2):
        chunks = len(bench.keys(what))
        ours, bare, peer = [], [], []
        for _ in range(bench.tools.rounds):
            ours.append(bench.by_volfs(what))
            bare.append(bench.by_bare_client(what))
            peer.append(bench.by_openvds("all" if what is None else str(what)))
        bench.note("near", what, chunks, peer, volfs=ours, bare=bare)
        seconds = median(ours, "seconds")
        yield (f"VDS {bench.method}", "whole volume" if what is None else f"cold slice across axis {what}",
               middle(seconds_of(ours)), middle(seconds_of(bare)), f"{median(bare, 'seconds') / seconds:.2f}", middle(peer),
               f"{statistics.median(peer) / seconds:.2f}", f"{median(ours, 'requests'):.0f} for {chunks}",
               " + ".join(f"{median(ours, party):.2f}" for party in ("client", "reader", "server")),
               " + ".join(f"{median(bare, party):.2f}" for party in ("client", "server")),
               f"{100 * statistics.median(run.busy() for run in ours):.0f} %")


def median(runs, what):
    """Returns the median of one figure of several runs."""
    return statistics.median(getattr(run, what) for run in runs)


def seconds_of(runs):
    """Returns the seconds of several runs."""
    return [run.seconds for run in runs]


def far(bench, *wanted):
    """Yields rows of a slow network, against the bare client with as many requests in flight as volfs has of long chunks."""
    for what in wanted:
        ours, bare = [], []
        for _ in range(bench.tools.rounds):
            ours.append(bench.by_volfs(what))
            bare.append(bench.by_bare_client(what, in_flight=32))
        bench.note("far", what, len(bench.keys(what)), volfs=ours, bare=bare)
        ours, bare = seconds_of(ours), seconds_of(bare)
        seconds, link = statistics.median(ours), statistics.median(bare)
        yield (f"VDS {bench.method}", "whole volume" if what is None else f"cold slice across axis {what}", middle(ours), middle(bare),
               f"{link / seconds:.2f}", f"{(seconds - link) * 1000 / ROUND_TRIP:.1f}")


def of_the_link(bench):
    """Yields a row: the whole volume over a network of limited bandwidth, against what it carries."""
    size = sum((bench.folder.parents[1] / key).stat().st_size for key in bench.keys())
    ours = [bench.by_volfs(None) for _ in range(bench.tools.rounds)]
    bare = [bench.by_bare_client(in_flight=32) for _ in range(bench.tools.rounds)]
    bench.note("narrow", None, len(bench.keys()), volfs=ours, bare=bare)
    part = lambda runs: f"{size * 8 / MEGABITS / 1e6 / median(runs, 'seconds'):.2f}"
    yield (f"VDS {bench.method}", f"{size / 1e6:.0f} MB", middle(seconds_of(ours)), part(ours), middle(seconds_of(bare)), part(bare),
           f"{median(ours, 'client'):.2f}")


def cached(bench, local):
    """Yields a row: a second mount with the same disk cache, against a mount of a local copy."""
    with tempfile.TemporaryDirectory(prefix="volfs-bench-cache.") as folder:
        options = ("--disk-cache", folder, "--disk-cache-size", "4GiB")
        bench.by_volfs(None, *options)
        again, files = [], []
        for _ in range(bench.tools.rounds):
            again.append(bench.by_volfs(None, *options))
            touch_memory(3 * bench.size + (64 << 20))
            with Volfs(bench.tools, local) as mount:
                array = Array.of(mount.layer(local.name))
                files.append(dd(array.raw, array.size))
        bench.note("disk cache", None, len(bench.keys()), volfs=again)
        bench.figures[-1]["local"] = files
        seconds = seconds_of(again)
        yield (f"VDS {bench.method}", "whole volume, second mount", middle(seconds),
               f"{statistics.median(files) / statistics.median(seconds):.2f} of a local folder ({middle(files)} s); {again[-1].requests} requests")


def arguments():
    """Parses the command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench store", description=__doc__.split("\n")[0])
    parser.add_argument("--edge", type=int, default=512, help="samples along each axis (512)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds per measurement (5)")
    parser.add_argument("--apart", action="store_true",
                        help="the store on one processor, its clients on another, as if each had a machine of its own")
    parser.add_argument("--only", type=lambda text: text.split(","), default=["near", "far", "cached"],
                        help="only these: near, far, cached")
    parser.add_argument("--json", type=Path, help="also write every single figure to this file")
    for name in ("data", "programs", "server"):
        parser.add_argument(f"--{name}", type=Path, required=True, help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    """Measures, and prints the tables."""
    args = arguments()
    if args.apart and len(os.sched_getaffinity(0)) < 2:
        print("scripts/bench: --apart needs two processors, and there is one", file=sys.stderr)
        return 2
    in_a_network_of_its_own()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    before, begin = os.getloadavg()[0], time.strftime("%Y-%m-%d %H:%M")
    sharing = processor_time.sharing()
    folder = args.data.resolve() / "store"
    (folder / BUCKET).mkdir(parents=True, exist_ok=True)
    keys, port, far_port, narrow_port = ("VOLFS" + secrets.token_hex(8), secrets.token_hex(20)), *(free_port() for _ in range(3))
    programs = args.programs.resolve()
    examples = programs / "examples"
    with (tempfile.TemporaryDirectory(prefix="volfs-bench.", ignore_cleanup_errors=True) as spare,
          process(args.server, "--host", "127.0.0.1", "--port", port, "--access-key", keys[0], "--secret-key", keys[1], folder,
                  answers=port) as server,
          process(examples / "link", far_port, port, ROUND_TRIP, 0, answers=far_port),
          process(examples / "link", narrow_port, port, ROUND_TRIP, MEGABITS, answers=narrow_port)):
        if args.apart:
            first, second, *_ = sorted(os.sched_getaffinity(0))
            for task in Path(f"/proc/{server}/task").iterdir():
                os.sched_setaffinity(int(task.name), {first})
            os.sched_setaffinity(0, {second})
        tools = Tools(programs / "volfs", None, None, Path(spare), folder, args.edge, args.rounds, 0, 0)
        benches = [Bench(tools, examples / "ranged_gets", folder, method, server) for method in METHODS]
        use(port, keys)
        for bench in benches:
            bench.make()
        print(f"{begin}; {os.cpu_count()} threads; volumes of {args.edge}^3 in s3s-fs, {args.rounds} rounds, medians (least..greatest), "
              f"seconds; load before {before:.2f}; {sharing}.\n")
        if "near" in args.only:
            head = ("volume", "what", "volfs", "bare client, 8 in flight", "times the bare client", "openvds", "times openvds",
                    "requests", "processor s: mount + reader + server", "bare client + server", "processors busy")
            print(table(head, [row for bench in benches for row in near(bench)]), end="\n\n", flush=True)
        if "cached" in args.only:
            rows = [row for bench in benches for row in cached(bench, bench.folder)]
            print(table(("volume", "what", "s", "against"), rows), end="\n\n", flush=True)
        if "far" in args.only:
            use(far_port, keys)
            print(f"With a round trip of {ROUND_TRIP} ms, and no limit of bandwidth:\n")
            head = ("volume", "what", "volfs", "bare client, 32 in flight", "times the bare client", "round trips more than it")
            print(table(head, [row for bench in benches for row in far(bench, 0, 1, 2, None)]), end="\n\n", flush=True)
            use(narrow_port, keys)
            print(f"With a round trip of {ROUND_TRIP} ms and {MEGABITS / 1000:g} Gbit/s, whole volumes:\n")
            head = ("volume", "size in the store", "volfs", "of what the link carries", "bare client, 32 in flight", "of what the link carries",
                    "processor s of the mount")
            print(table(head, [row for bench in benches for row in of_the_link(bench)]))
        if args.json:
            about = {"edge": args.edge, "rounds": args.rounds, "apart": args.apart, "round_trip_ms": ROUND_TRIP, "megabits": MEGABITS}
            figures.write(args.json, tools.volfs, begin, about, rows=[row for bench in benches for row in bench.figures])
    return 0


if __name__ == "__main__":
    sys.exit(main())
