"""Records of WARC files as ISO 28500 has them, read by warcio without its help for HTTP."""

import base64
import hashlib
import sys

from warcio.archiveiterator import ArchiveIterator


def fail(text):
    """Ends the judge: something is not as it has to be."""
    sys.exit(text)


def expect(condition, text):
    if not condition:
        fail(text)


def sha1(data):
    return "sha1:" + base64.b32encode(hashlib.sha1(data).digest()).decode()


class Record:
    """A record with its fields (in lower case) and its block, as it stands in the file."""

    def __init__(self, path, record):
        self.path = path
        self.kind = record.rec_type
        self.version = record.rec_headers.protocol
        self.names = [name for name, _ in record.rec_headers.headers]
        self.fields = {name.lower(): value for name, value in record.rec_headers.headers}
        expect(len(self.fields) == len(self.names), f"a field stands twice: {self.names}")
        self.block = record.raw_stream.read()
        length = int(self.fields["content-length"])
        expect(len(self.block) == length, f"{self.id}: {len(self.block)} bytes, not {length}")

    def __getattr__(self, name):
        names = {"id": "record-id", "uri": "target-uri"}
        return self.fields.get("warc-" + names.get(name, name).replace("_", "-"))

    def http(self):
        """The head as a list of lines and the body as it went over the wire."""
        head, blank, body = self.block.partition(b"\r\n\r\n")
        expect(blank, f"{self.uri}: the block has no end of a head")
        return head.split(b"\r\n"), body

    def status(self):
        return int(self.http()[0][0].split()[1])

    def header(self, name):
        for line in self.http()[0][1:]:
            key, _, value = line.partition(b":")
            if key.strip().lower() == name.lower().encode():
                return value.strip().decode()
        return None

    def is_chunked(self):
        return (self.header("transfer-encoding") or "").lower() == "chunked"

    def payload(self):
        """The body without its transfer coding. Its content coding stays (IIPC issue 22)."""
        body = self.http()[1]
        return unchunked(body) if self.is_chunked() else body


def unchunked(body):
    """RFC 9112, 7.1."""
    data, at = b"", 0
    while True:
        end = body.index(b"\r\n", at)
        size = int(body[at:end].split(b";")[0].strip(), 16)
        at = end + 2
        if size == 0:
            break
        data += body[at : at + size]
        at += size
        expect(body[at : at + 2] == b"\r\n", "a chunk has no line end behind it")
        at += 2
    # The trailer ends with an empty line, which is the last of the body.
    trailer = body[at:]
    expect(trailer == b"\r\n" or trailer.endswith(b"\r\n\r\n"), f"after the last chunk: {trailer}")
    return data


def records(path):
    with open(path, "rb") as file:
        for record in ArchiveIterator(file, no_record_parse=True):
            yield Record(path, record)
