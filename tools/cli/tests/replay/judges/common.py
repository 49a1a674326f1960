"""What the judges share: a connection that changes nothing of what it is given, and the captures that cdxj-indexer sees."""

import http.client
import io
import json
import re
import urllib.parse

from cdxj_indexer.main import CDXJIndexer
from warcio.bufferedreaders import BufferedReader

# warcio gives up on every encoded body where a later `brotli` than it knows is installed beside it. Its rows need no decoded body.
BufferedReader.DECOMPRESSORS.pop("br", None)

# Everything that may stand in a request as it is. The rest is a space, a control character, or no ASCII.
PLAIN = "%/:=&?~+!$,;'@()*[]|^`{}\\\"<>"


class Server:
    """A server of HTTP, asked over one connection. Nothing is decoded, and no redirect is followed."""

    def __init__(self, base):
        self.base = base.rstrip("/")
        self.authority = urllib.parse.urlsplit(self.base).netloc
        self.connection = None

    def get(self, path, headers=()):
        """Status, fields and body of what is at a path."""
        for attempt in (1, 2):
            if self.connection is None:
                self.connection = http.client.HTTPConnection(self.authority, timeout=60)
            try:
                self.connection.request("GET", path, headers=dict(headers))
                answer = self.connection.getresponse()
                return answer.status, answer.headers, answer.read()
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError):
                # A connection that was idle may have been closed; a new one may not.
                self.connection = None
                if attempt == 2:
                    raise

    def query(self, path, **parameters):
        """Status and text of what is at a path with a query."""
        query = urllib.parse.urlencode(parameters, doseq=True, quote_via=urllib.parse.quote)
        status, fields, body = self.get(f"{path}?{query}")
        return status, fields, body.decode("utf-8")


def in_path(url):
    """A URL as it may stand in a path of another one."""
    return urllib.parse.quote(url, safe=PLAIN)


class Kept(io.StringIO):
    """A text that the indexer may close."""

    def close(self):
        pass


def lines_of(path):
    """What cdxj-indexer writes of a file: key, timestamp and fields of each line. None where it gives up."""
    kept = Kept()
    indexer = CDXJIndexer(output=kept, inputs=[path], sort=True, post_append=True)
    try:
        indexer.process_all()
    except Exception:
        return None
    lines = []
    for line in kept.getvalue().splitlines():
        key, timestamp, fields = line.split(" ", 2)
        lines.append((key, timestamp, json.loads(fields)))
    return lines


def samples(words):
    """Collection, name and path of each word."""
    return [word.split("=", 2) for word in words]


def bare(digest):
    """A digest without the name of its algorithm."""
    return re.sub("^[a-z0-9]+:", "", digest or "-")
