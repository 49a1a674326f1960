"""For every response with the status 200, the bytes that `id_` hands out are those that warcio reads, and have the digest of the
record; where warcio finds another digest, that is said in the answer.

Words: the base of the server, then COLLECTION=NAME=PATH for each file. Prints what was counted.
"""

import base64
import collections
import hashlib
import io
import json
import sys

import surt
from common import Server, in_path, lines_of, samples
from warcio.archiveiterator import ArchiveIterator
from warcio.bufferedreaders import ChunkedDataReader
from warcio.timeutils import iso_date_to_timestamp

# Files that end, or whose next record begins, before the record is whole. warcio hands out what there is; we refuse it and say so.
CUT = {
    "chatnoir-eu_chatnoir-resiliparse--clipped.warc.gz",
    "iipc_webarchive-commons--link-extraction-test.warc",
    "netarchivesuite_solrwayback--Evil-Warc-Headers.warc",
    "netarchivesuite_solrwayback--transfer_compression_none_truncated.warc.gz",
    "webrecorder_warcio--example-space-in-url.arc",
    "webrecorder_warcio--example-trunc.warc",
    "webrecorder_warcio--example-wrong-chunks.warc.gz",
}
# The record of this URL calls its block an image, and the block begins like HTTP: warcio believes the block, we the record.
IMAGE = "http://whensAPNGNotAPing.net"

server = Server(sys.argv[1])
counted = collections.Counter()
faults = []


def unframed(raw, head):
    """A payload without the framing of its transfer."""
    coding = head.get_header("Transfer-Encoding") if head else None
    if not coding or coding.strip().lower() != "chunked":
        return raw
    reader = ChunkedDataReader(io.BytesIO(raw), decomp_type=None)
    pieces = []
    while True:
        piece = reader.read(65536)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)


def has_digest(payload, declared):
    """Whether a payload has a digest, in whichever spelling."""
    algorithm, _, value = declared.partition(":")
    found = hashlib.new(algorithm.lower().replace("-", ""), payload)
    spellings = {found.hexdigest(), base64.b32encode(found.digest()).decode().rstrip("=")}
    return value.rstrip("=").lower() in {spelling.lower() for spelling in spellings}


def responses(path):
    """The responses that warcio reads of a file: URL, timestamp, status, its reading of the payload, verdict of the digest."""
    with open(path, "rb") as stream:
        iterator = ArchiveIterator(stream, arc2warc=True)
        try:
            for record in iterator:
                if record.rec_type != "response":
                    continue
                url = record.rec_headers.get_header("WARC-Target-URI")
                date = record.rec_headers.get_header("WARC-Date")
                head = record.http_headers
                status = head.get_statuscode() if head else "-"
                raw = record.raw_stream.read()
                payload = unframed(raw, head)
                declared = record.rec_headers.get_header("WARC-Payload-Digest")
                verdict = None
                if declared:
                    verdict = has_digest(raw, declared) or has_digest(payload, declared)
                yield iterator.get_record_offset(), url, iso_date_to_timestamp(date), status, payload, verdict
        except Exception:
            # What is behind the damage only we can read.
            counted["files that warcio leaves"] += 1


for collection, name, path in samples(sys.argv[2:]):
    lines = {int(fields["offset"]): (key, fields) for key, _time, fields in lines_of(path) or []}
    groups = collections.defaultdict(list)
    for offset, url, time, status, payload, verdict in responses(path):
        if not url.startswith("http"):
            continue
        key, fields = lines.get(offset, (None, {}))
        if key is None:
            key = surt.surt(url)
        if fields.get("method", "GET") != "GET":
            sign = "&" if "?" in url else "?"
            body = fields.get("requestBody")
            url += f"{sign}__wb_method={fields['method']}" + (f"&{body}" if body else "")
        groups[key, time].append((url, status, payload, verdict))
    for (key, time), group in groups.items():
        good = [own for own in group if own[1] == "200" and own[0] != IMAGE]
        if not good:
            continue
        # Of several with one key in one second, any may be shown.
        for url, _status, payload, verdict in good:
            status, fields, body = server.get(f"/{collection}/{time}id_/{in_path(url)}", {"Accept-Encoding": "identity"})
            where = f"{name} {time} {url}"
            if name in CUT and status == 502 and verdict is not True:
                counted["cut records, refused"] += 1
                continue
            if status != 200:
                if len(good) < len(group) and status in (int(own[1]) for own in group if own[1].isdigit()):
                    counted["another of that second"] += 1
                else:
                    faults.append(f"{where}: {status} {body[:200]}")
                continue
            fitting = [own for own in good if own[2] == body]
            if not fitting:
                faults.append(f"{where}: {len(body)} bytes, and not the {len(payload)} that warcio reads")
                continue
            said = fields.get("X-Archive-Payload-Digest")
            verdicts = {own[3] for own in fitting}
            if said == "mismatch" and False not in verdicts:
                faults.append(f"{where}: called a mismatch, although the digest fits")
            if said != "mismatch" and verdicts == {False}:
                faults.append(f"{where}: the digest differs, and that is not said")
            if fields.get("Memento-Datetime") is None:
                faults.append(f"{where}: no Memento-Datetime")
            counted["answers"] += 1
            counted[{True: "with their digest", False: "with another digest", None: "without one"}[fitting[0][3]]] += 1

if faults:
    sys.exit(f"{len(faults)} of {counted} are wrong:\n" + "\n".join(faults[:40]))
print(json.dumps(counted))
