"""An object store that fails: the objects are the files of a folder, shown as S3 shows them, and a share of the answers
is an error, comes late, is cut short, or is no answer. Used by soak.py.

The folder may change at any time: an answer is of one open file, and the version of an object (its ETag) follows from
what it holds.
"""

import hashlib
import http.server
import multiprocessing
import os
import random
import re
import socket
import struct
import time
import urllib.parse
from collections import Counter
from email.utils import formatdate
from xml.sax.saxutils import escape

BUCKET = "soak"
KINDS = ["503", "stall", "reset", "cut", "no answer"]
PIECE = 64 << 10


class Store(http.server.ThreadingHTTPServer):
    """The server: one thread a connection."""

    daemon_threads = True
    request_queue_size = 256

    def __init__(self, folder, share, seed, faults):
        super().__init__(("127.0.0.1", 0), Handler)
        self.folder, self.share, self.dice, self.faults, self.etags = folder, share, random.Random(seed), faults, {}

    def fault(self):
        """Returns how the next answer fails, if it does."""
        if self.dice.random() >= self.share.value:
            return None
        number = self.dice.randrange(len(KINDS))
        self.faults[number] += 1
        return KINDS[number]

    def etag(self, file):
        """Returns the version of an open file. The time of change tells apart files that have one inode after another."""
        stat = os.fstat(file.fileno())
        key = stat.st_ino, stat.st_ctime_ns, stat.st_size
        if key not in self.etags:
            self.etags[key] = hashlib.file_digest(file, "md5").hexdigest()
        return f'"{self.etags[key]}"', stat

    def handle_error(self, request, client_address):
        """Clients come and go."""


class Handler(http.server.BaseHTTPRequestHandler):
    """Answers GET, HEAD, and GET of lists."""

    protocol_version = "HTTP/1.1"
    timeout = 120

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer()

    def do_GET(self):
        self.answer()

    def answer(self):
        fault = self.server.fault()
        if fault == "no answer":
            self.close_connection = True
            return
        if fault == "stall":
            time.sleep(self.server.dice.choice([0.5, 2, 8]))
        if fault == "503":
            self.send(503, b"<Error><Code>SlowDown</Code></Error>")
            return
        path, _, query = self.path.partition("?")
        name = urllib.parse.unquote(path).strip("/")
        asked = dict(urllib.parse.parse_qsl(query))
        if name == BUCKET and self.command == "GET":
            self.send(200, self.listed(asked), fault)
            return
        try:
            with open(os.path.join(self.server.folder, os.path.relpath(name, BUCKET)), "rb") as file:
                self.send_object(file, fault)
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            self.send(404, b"<Error><Code>NoSuchKey</Code></Error>")

    def send_object(self, file, fault):
        etag, stat = self.server.etag(file)
        if self.headers.get("If-Match", etag) != etag:
            self.send(412, b"<Error><Code>PreconditionFailed</Code></Error>")
            return
        first, last, status = 0, stat.st_size - 1, 200
        if match := re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", "")):
            begin, end = match.groups()
            first = int(begin) if begin else max(0, stat.st_size - int(end))
            last = min(last, int(end)) if begin and end else last
            status = 206
            if first > last:
                self.send(416, b"", headers={"Content-Range": f"bytes */{stat.st_size}"})
                return
        headers = {"ETag": etag, "Last-Modified": formatdate(stat.st_mtime, usegmt=True)}
        if status == 206:
            headers["Content-Range"] = f"bytes {first}-{last}/{stat.st_size}"
        body = b"" if self.command == "HEAD" else os.pread(file.fileno(), last + 1 - first, first)
        self.send(status, body, fault, headers, last + 1 - first)

    def send(self, status, body, fault=None, headers=None, length=None):
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        if self.command == "HEAD":
            return
        if fault in ("reset", "cut"):
            body = body[: self.server.dice.randrange(len(body) + 1)]
        self.wfile.write(body)
        if fault in ("reset", "cut"):
            self.wfile.flush()
            self.close_connection = True
            if fault == "reset":
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()

    def listed(self, asked):
        """Returns the list of objects and folders below a prefix, in pages as long as the client wants them."""
        prefix, delimiter = asked.get("prefix", ""), asked.get("delimiter", "")
        after = asked.get("continuation-token") or asked.get("start-after", "")
        most, entries = int(asked.get("max-keys", 1000)), {}
        for folder, _, names in os.walk(os.path.join(self.server.folder, os.path.dirname(prefix))):
            for name in names:
                path = os.path.join(folder, name)
                key = os.path.relpath(path, self.server.folder)
                rest = key.removeprefix(prefix)
                if not key.startswith(prefix):
                    continue
                if delimiter and delimiter in rest:
                    entries[prefix + rest.split(delimiter)[0] + delimiter] = None
                    continue
                try:
                    with open(path, "rb") as file:
                        entries[key] = self.server.etag(file)
                except OSError:
                    continue  # it was replaced just now
        keys = [key for key in sorted(entries) if key > after]
        text = [f"<Name>{BUCKET}</Name><Prefix>{escape(prefix)}</Prefix><KeyCount>{len(keys[:most])}</KeyCount>"]
        text.append(f"<IsTruncated>{str(len(keys) > most).lower()}</IsTruncated>")
        if len(keys) > most:
            text.append(f"<NextContinuationToken>{escape(keys[most - 1])}</NextContinuationToken>")
        for key in keys[:most]:
            if entries[key] is None:
                text.append(f"<CommonPrefixes><Prefix>{escape(key)}</Prefix></CommonPrefixes>")
                continue
            etag, stat = entries[key]
            modified = time.strftime("%Y-%m-%dT%H:%M:%S.000Z", time.gmtime(stat.st_mtime))
            text.append(f"<Contents><Key>{escape(key)}</Key><LastModified>{modified}</LastModified><ETag>{escape(etag)}</ETag>")
            text.append(f"<Size>{stat.st_size}</Size></Contents>")
        return f'<?xml version="1.0"?><ListBucketResult>{"".join(text)}</ListBucketResult>'.encode()


class FlakyStore:
    """The server in a process of its own. A context manager."""

    def __init__(self, folder, seed):
        self.share, self.faults = multiprocessing.Value("d", 0.0), multiprocessing.Array("Q", len(KINDS), lock=False)
        self.port, self.arguments = multiprocessing.Value("i", 0), (folder, self.share, seed, self.faults)
        self.process = multiprocessing.Process(target=self.serve, daemon=True)

    def serve(self):
        server = Store(*self.arguments)
        self.port.value = server.server_address[1]
        server.serve_forever()

    def __enter__(self):
        self.process.start()
        while not self.port.value:
            time.sleep(0.01)
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.join()

    def counts(self):
        """Returns how many answers failed, by kind."""
        return Counter(dict(zip(KINDS, self.faults, strict=True)))

    def environment(self):
        """Returns the environment of clients."""
        return {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.port.value}", "AWS_REGION": "us-east-1", "AWS_ALLOW_HTTP": "true",
                "AWS_ACCESS_KEY_ID": "anyone", "AWS_SECRET_ACCESS_KEY": "anything"}
