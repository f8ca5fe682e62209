"""Garage (https://garagehq.deuxfleurs.fr), a distributed object store, as a cluster of nodes on this machine.

scripts/install_stores.sh --garage installs it. Only the standard library is needed.
"""

import datetime
import hashlib
import hmac
import http.client
import os
import secrets
import socket
import subprocess
import sys
import time
import urllib.parse

REGION = "us-east-1"
BUCKET = "volfs"
START = 30  # seconds that a node, and the cluster, may take to start

CONFIG = """
metadata_dir = "{folder}/meta"
data_dir = "{folder}/data"
db_engine = "lmdb"
replication_factor = {factor}
compression_level = "none"
disable_scrub = true
use_local_tz = false
rpc_bind_addr = "127.0.0.1:{rpc}"
rpc_public_addr = "127.0.0.1:{rpc}"
rpc_secret = "{rpc_secret}"

[s3_api]
s3_region = "{region}"
api_bind_addr = "127.0.0.1:{s3}"
root_domain = ".s3.localhost"

[admin]
api_bind_addr = "127.0.0.1:{admin}"
admin_token = "{token}"
"""


def free_ports(count):
    """Returns ports that nobody uses now."""
    sockets = [socket.socket() for _ in range(count)]
    for each in sockets:
        each.bind(("127.0.0.1", 0))
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def wait_until(what, is_true, seconds=START):
    """Waits; ends the program if it takes too long."""
    until = time.monotonic() + seconds
    while not is_true():
        if time.monotonic() > until:
            sys.exit(f"not within {seconds} s: {what}")
        time.sleep(0.1)


class Node:
    """One server, its folder and its ports."""

    def __init__(self, program, folder, shared):
        self.program, self.folder, self.process = program, folder, None
        self.s3, self.rpc, self.admin = free_ports(3)
        os.makedirs(folder)
        self.config = os.path.join(folder, "garage.toml")
        with open(os.open(self.config, os.O_WRONLY | os.O_CREAT, 0o600), "w", encoding="ascii") as file:
            file.write(CONFIG.format(folder=folder, s3=self.s3, rpc=self.rpc, admin=self.admin, **shared))

    def start(self):
        """Starts the server; returns at once."""
        with open(os.path.join(self.folder, "log"), "ab") as log:
            environment = {**os.environ, "RUST_LOG": "garage=warn"}
            self.process = subprocess.Popen([self.program, "-c", self.config, "server"], stdout=log, stderr=log,
                                            stdin=subprocess.DEVNULL, env=environment)

    def kill(self):
        """Kills the server with SIGKILL."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def try_run(self, *words):
        """Runs a command of the cluster; returns what it prints, or None if it fails."""
        done = subprocess.run([self.program, "-c", self.config, *words], capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else None

    def run(self, *words):
        """Runs a command of the cluster; ends the program if it fails for a while."""
        said = []
        wait_until(" ".join(("garage", *words)), lambda: said.append(self.try_run(*words)) or said[-1] is not None)
        return said[-1]

    def is_healthy(self):
        """Returns whether this node says that all nodes are there."""
        try:
            connection = http.client.HTTPConnection("127.0.0.1", self.admin, timeout=5)
            connection.request("GET", "/health")
            answer = connection.getresponse()
            return answer.status == 200 and b"fully operational" in answer.read()
        except OSError:
            return False


class Cluster:
    """Nodes that each keep a copy of every object, a bucket and a key. A context manager: all is gone at its end."""

    def __init__(self, program, folder, nodes=3):
        shared = {"factor": nodes, "region": REGION, "rpc_secret": secrets.token_hex(32), "token": secrets.token_hex(16)}
        self.key, self.secret = "GK" + secrets.token_hex(12), secrets.token_hex(32)
        self.nodes = [Node(program, os.path.join(folder, f"node{n}"), shared) for n in range(nodes)]

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        for node in self.nodes:
            node.kill()

    def start(self):
        """Starts all nodes, lets them know each other, and makes a bucket."""
        for node in self.nodes:
            node.start()
        first = self.nodes[0]
        names = [node.run("node", "id", "-q") for node in self.nodes]
        for name in names[1:]:
            first.run("node", "connect", name)
        for number, name in enumerate(names):
            first.run("layout", "assign", "-z", f"zone{number}", "-c", "10G", name.split("@")[0])
        first.run("layout", "apply", "--version", "1")
        wait_until("all nodes are there", self.is_healthy)
        first.run("key", "import", "--yes", "-n", "volfs", self.key, self.secret)
        first.run("bucket", "create", BUCKET)
        first.run("bucket", "allow", "--read", "--write", BUCKET, "--key", self.key)

    def is_healthy(self):
        """Returns whether each node sees all others."""
        return all(node.is_healthy() for node in self.nodes)

    def environment(self, node):
        """Returns the environment of clients that talk to one node."""
        return {
            "AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.nodes[node].s3}",
            "AWS_REGION": REGION,
            "AWS_ACCESS_KEY_ID": self.key,
            "AWS_SECRET_ACCESS_KEY": self.secret,
            "AWS_ALLOW_HTTP": "true",
        }

    def put(self, name, body):
        """Puts an object, signed as version 4 of Amazon's signatures has it."""
        host = f"127.0.0.1:{self.nodes[0].s3}"
        path = urllib.parse.quote(f"/{BUCKET}/{name}")
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        scope = f"{now[:8]}/{REGION}/s3/aws4_request"
        signed = {"host": host, "x-amz-content-sha256": "UNSIGNED-PAYLOAD", "x-amz-date": now}
        lines = "".join(f"{header}:{value}\n" for header, value in signed.items())
        request = f"PUT\n{path}\n\n{lines}\n{';'.join(signed)}\nUNSIGNED-PAYLOAD"
        text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(request.encode()).hexdigest()}"
        key = ("AWS4" + self.secret).encode()
        for word in scope.split("/"):
            key = hmac.digest(key, word.encode(), "sha256")
        signature = hmac.digest(key, text.encode(), "sha256").hex()
        credential = f"Credential={self.key}/{scope},SignedHeaders={';'.join(signed)},Signature={signature}"
        connection = http.client.HTTPConnection(host, timeout=60)
        connection.request("PUT", path, body, {**signed, "authorization": f"AWS4-HMAC-SHA256 {credential}"})
        answer = connection.getresponse()
        said = answer.read()
        if answer.status != 200:
            sys.exit(f"cannot put {name}: {answer.status} {said.decode(errors='replace')}")
        connection.close()
