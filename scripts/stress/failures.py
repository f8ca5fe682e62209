#!/usr/bin/env python3
"""Lets every n-th system call of volfs fail, for every n, and checks what users get.

    scripts/stress/failures.py VOLFS [--most N] [--only COMMAND[,COMMAND]] [--calls CALL[,CALL]]

The commands are ls, info, cat, verify, mount and serve, each on tests/data/demo. For each kind of system call, a command
is run once for every n, and the n-th call of each thread fails as the kernel could let it fail (strace does that). What
is allowed: the right output, or an error of a line or two and an exit status other than 0; of a mount or a server, right
bytes or an error for each request. Never a wrong byte, a panic, an abort, a hang, or a mount or process that stays.
What fails before `main` in the loader, or where the standard library starts a thread, ends the process, and is counted
apart.
Needs root and strace. --most tries only so many values of n for each kind of call, evenly spread.
"""
import argparse
import collections
import difflib
import hashlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
DEMO = ROOT / "tests" / "data" / "demo"
# What each call can fail with.
CALLS = {
    "pread64": ["EIO"], "openat,openat2": ["EMFILE", "EIO"], "statx,newfstatat,fstat": ["EIO"], "getdents64": ["EIO"],
    "read": ["EIO"], "mmap": ["ENOMEM"], "mprotect": ["ENOMEM"], "clone,clone3": ["EAGAIN"],
    "socket,socketpair,accept4": ["EMFILE"], "bind,listen,connect": ["EACCES"], "pipe2,eventfd2,epoll_create1,memfd_create": ["EMFILE"],
    "epoll_ctl": ["ENOMEM"], "write,writev,pwrite64": ["ENOSPC"], "sendto,sendmsg": ["EPIPE"], "recvfrom,recvmsg": ["ECONNRESET"],
    "ioctl": ["EINVAL"], "fcntl": ["EMFILE"], "madvise,fadvise64": ["EINVAL"], "readlink,readlinkat": ["EACCES"], "mount": ["EPERM"],
    "splice,vmsplice": ["EINVAL"], "prctl,sched_getaffinity": ["EPERM"], "inotify_init1,inotify_add_watch": ["EMFILE"],
    "fork,vfork": ["EAGAIN"], "dup,dup2,dup3": ["EMFILE"], "setsid,umask,chdir": ["EPERM"],
}
SECONDS = 40
# Words of times and speeds, which differ from run to run.
TIMES = re.compile(rb"\d+([.,]\d+)? ?(\xc2\xb5s|ms|s|[kMG]B/s|[KMG]iB/s|%)\b")
# The most bytes of a piece that is read of a long file.
PIECE = 4 << 20
FILES = ["north.zgy/data/lod0.raw", "north.zgy/data/lod0.json", "south.vds/Amplitude/lod0.raw", "cells/color/lod0.npy", "north.zgy/data/lod0.sgy"]


class Wrong(Exception):
    """What volfs must not do."""


def strace(output, calls, inject):
    command = ["strace", "-f", "-y", "-qq", "-o", output, "-e", f"trace={calls}", "-e", "signal=none"]
    return command + (["-e", f"inject={calls}:{inject}"] if inject else [])


def end(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def finished(process):
    try:
        return process.communicate(timeout=SECONDS)
    except subprocess.TimeoutExpired:
        raise Wrong("hangs") from None


def check_words(process, errors):
    words = errors.decode(errors="replace")[:300]
    if process.returncode < 0 or process.returncode > 128:
        raise Wrong(f"ended by a signal: {words}")
    if b"panicked" in errors or b"RUST_BACKTRACE" in errors:
        raise Wrong(f"panicked: {words}")


class Once:
    """A command that prints something and ends."""

    def __init__(self, volfs, name, arguments, is_exact, folder=DEMO):
        self.volfs, self.name, self.arguments, self.is_exact, self.folder = volfs, name, arguments, is_exact, folder

    def run(self, prefix):
        process = subprocess.Popen(prefix + [self.volfs, *self.arguments], cwd=self.folder, start_new_session=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            output, errors = finished(process)
        finally:
            end(process)
        check_words(process, errors)
        output = output if self.is_exact else TIMES.sub(b"", output)
        return process.returncode, output, errors

    def expected(self):
        code, output, errors = self.run([])
        assert code == 0, errors
        self.output = output

    def check(self, prefix):
        code, output, errors = self.run(prefix)
        if code == 0 and output != self.output and re.sub(rb"[ -]+", b" ", output) != re.sub(rb"[ -]+", b" ", self.output) and (self.is_exact or not (errors or b"rror" in output)):
            lines = difflib.ndiff(self.output.decode(errors="replace").splitlines(), output.decode(errors="replace").splitlines())
            raise Wrong("another output and no error: " + "; ".join(line for line in lines if line[0] in "+-")[:400])
        if code != 0 and not (errors.strip() or output.strip()):
            raise Wrong(f"status {code} without a word")
        return "right" if code == 0 and output == self.output else "error"


class Mount:
    """A mount, of which some files are read."""

    name = "mount"

    def __init__(self, volfs, source=DEMO, paths=FILES):
        self.volfs, self.source, self.paths = volfs, source, paths

    def session(self, prefix):
        with tempfile.TemporaryDirectory() as folder:
            target, state = Path(folder) / "mnt", Path(folder) / "state"
            target.mkdir()
            state.mkdir()
            environment = os.environ | {"XDG_RUNTIME_DIR": str(state), "TMPDIR": str(state)}
            process = subprocess.Popen(prefix + [self.volfs, "mount", "--foreground", self.source, target], env=environment, start_new_session=True,
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            try:
                return self.use(process, target)
            finally:
                subprocess.run(["umount", "--lazy", target], stderr=subprocess.DEVNULL)
                end(process)

    def use(self, process, target):
        limit = time.monotonic() + SECONDS
        while not os.path.ismount(target) and process.poll() is None:
            if time.monotonic() > limit:
                raise Wrong("mounting hangs")
            time.sleep(0.02)
        found = {}
        if process.poll() is None:
            # a process of its own, which can be ended if a read hangs
            reader = subprocess.Popen([sys.executable, __file__, "--read", target, *self.paths], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, start_new_session=True)
            try:
                lines, _ = finished(reader)
            except Wrong:
                # before the reader, which may wait for it and not be ended
                end(process)
                raise
            finally:
                end(reader)
            found = dict(line.split("\t") for line in lines.splitlines())
            subprocess.run(["umount", target], stderr=subprocess.DEVNULL)
        _, errors = finished(process)
        check_words(process, errors)
        if os.path.ismount(target):
            raise Wrong("the mount stays after the end of its process")
        if not found and not errors.strip():
            raise Wrong(f"status {process.returncode} without a word")
        return found

    def expected(self):
        self.files = self.session([])
        assert len(self.files) == len(self.paths) and not any(value.startswith("error") for value in self.files.values()), self.files

    def check(self, prefix):
        found = self.session(prefix)
        for path, value in found.items():
            if value != self.files[path] and not value.startswith("error"):
                raise Wrong(f"wrong bytes: {path}")
        return "right" if found == self.files else "error"


class Serve(Mount):
    """A server, of which some files are fetched."""

    name = "serve"

    def session(self, prefix):
        process = subprocess.Popen(prefix + [self.volfs, "serve", self.source, "--listen", "127.0.0.1:0"], start_new_session=True,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            return self.use(process, None)
        finally:
            end(process)

    def use(self, process, _):
        os.set_blocking(process.stdout.fileno(), False)
        words, limit, address = b"", time.monotonic() + SECONDS, None
        while address is None and process.poll() is None:
            words += process.stdout.read() or b""
            match = re.search(rb"http://127\.0\.0\.1:\d+/\S*", words)
            address = match and match[0].decode()
            if time.monotonic() > limit:
                raise Wrong(f"does not begin to serve: {words!r}")
            time.sleep(0.02)
        found = {}
        if address:
            for path in self.paths:
                try:
                    found[path] = fetch(address, path)
                except TimeoutError:
                    raise Wrong(f"{path} hangs") from None
                except (OSError, urllib.error.URLError, ConnectionError, ValueError) as error:
                    found[path] = f"error {error}"
                except Exception as error:  # a body that ends early
                    found[path] = f"error {type(error).__name__}"
            # the tracer would not pass it on
            for child in children(process.pid):
                os.kill(child, signal.SIGTERM)
        os.set_blocking(process.stdout.fileno(), True)
        words += finished(process)[0] or b""
        check_words(process, words)
        if not address and not words.strip():
            raise Wrong(f"status {process.returncode} without a word")
        return found


def children(pid):
    """The processes that a process has started, or itself if there are none."""
    try:
        found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except FileNotFoundError:
        return []
    return [int(child) for child in found] or [pid]


def pieces(length):
    """Returns what is read of a file: all of it, or three pieces of a long one."""
    return [(0, length)] if length <= 3 * PIECE else [(0, PIECE), (length // 2, PIECE), (length - PIECE, PIECE)]


def fetch(address, path):
    """Returns the hash of what a server has at a path."""
    base, _, query = address.partition("?")
    path, _, more = path.partition("?")
    query = "&".join(part for part in (more, query) if part)
    url = f"{base.rstrip('/')}/{urllib.parse.quote(path)}" + (f"?{query}" if query else "")
    found, length = hashlib.sha256(), None
    with urllib.request.urlopen(url, timeout=SECONDS) as response:
        if response.length is None or response.length <= 3 * PIECE:
            return hashlib.sha256(response.read()).hexdigest()
        length = response.length
    for at, size in pieces(length):
        request = urllib.request.Request(url, headers={"Range": f"bytes={at}-{at + size - 1}"})
        with urllib.request.urlopen(request, timeout=SECONDS) as response:
            body = response.read()
        if len(body) != size:
            raise ValueError("another length")
        found.update(body)
    return found.hexdigest()


def read(target, paths):
    """Prints the hash of each file below a mount, or its error."""
    for path in paths:
        found = hashlib.sha256()
        try:
            with open(target / path, "rb", buffering=0) as file:
                for at, size in pieces(os.fstat(file.fileno()).st_size):
                    file.seek(at)
                    while size > 0 and (part := file.read(size)):
                        found.update(part)
                        size -= len(part)
            print(f"{path}\t{found.hexdigest()}")
        except OSError as error:
            print(f"{path}\terror {error.errno}")


def is_answer(trace):
    """Returns whether a write that failed was an answer to the kernel, which then waits for it."""
    last = {}
    for line in trace.splitlines():
        thread, _, call = line.partition(" ")
        if "resumed>" not in call:
            last[thread] = call
        if "INJECTED" in call and re.search(r"write.*</dev/fuse>", last[thread]):
            return True
    return False


def count(command, calls, output):
    """Returns the most calls of these kinds that one thread makes, and how many the loader makes before the program."""
    command.check(strace(output, calls + ",poll", None))
    lines = [line.split(None, 1) for line in Path(output).read_text(errors="replace").splitlines() if "(" in line]
    # the first that Rust does before `main`
    begin = next((at for at, (_, call) in enumerate(lines) if call.startswith("poll(")), 0)
    threads = collections.Counter(thread for thread, call in lines if not call.startswith("poll("))
    return max(threads.values(), default=0), begin


def main():
    if sys.argv[1:2] == ["--read"]:
        return read(Path(sys.argv[2]), sys.argv[3:])
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("volfs", type=lambda path: str(Path(path).resolve()))
    parser.add_argument("--most", type=int, default=10**9)
    parser.add_argument("--only", type=lambda names: names.split(","))
    parser.add_argument("--calls", type=lambda names: names.split(","))
    arguments = parser.parse_args()
    volfs = arguments.volfs
    commands = [
        Once(volfs, "ls", ["ls", "."], False), Once(volfs, "info", ["info", "north.zgy"], False),
        Once(volfs, "cat", ["cat", "south.vds"], True), Once(volfs, "verify", ["verify", "."], False), Mount(volfs), Serve(volfs),
    ]
    output = tempfile.NamedTemporaryFile(prefix="volfs-strace.").name
    totals, wrong = collections.Counter(), 0
    for command in commands:
        if arguments.only and command.name not in arguments.only:
            continue
        command.expected()
        for calls, errors in CALLS.items():
            if arguments.calls and not set(calls.split(",")) & set(arguments.calls):
                continue
            most, of_loader = count(command, calls, output)
            tried = range(1, most + 1)
            if most > arguments.most:
                tried = sorted({1 + round(i * (most - 1) / (arguments.most - 1)) for i in range(arguments.most)})
            outcomes = collections.Counter()
            for n in tried:
                for error in errors:
                    try:
                        outcomes[command.check(strace(output, calls, f"error={error}:when={n}"))] += 1
                    except Wrong as what:
                        if "hangs" in str(what) and is_answer(Path(output).read_text(errors="replace")):
                            outcomes["an answer that the kernel does not take, which waits"] += 1
                            continue
                        if n <= of_loader and str(what) == "ended by a signal: ":
                            outcomes["in the loader"] += 1
                            continue
                        if "alternative stack" in str(what):
                            outcomes["in the start of a thread, by Rust"] += 1
                            continue
                        wrong += 1
                        outcomes["WRONG"] += 1
                        print(f"WRONG {command.name}: {calls} fails with {error} at call {n}: {what}", flush=True)
            totals.update(outcomes)
            if outcomes:
                print(f"{command.name:7} {calls}: " + ", ".join(f"{n} {what}" for what, n in sorted(outcomes.items())), flush=True)
    print(f"\n{sum(totals.values())} failures injected: " + ", ".join(f"{n} {what}" for what, n in sorted(totals.items())))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
