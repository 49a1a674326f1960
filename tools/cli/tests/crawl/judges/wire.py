"""Compares the records of a crawl with what a relay saw: wire.py FOLDER PORT WARC...

FOLDER has N.up and N.down for each connection to PORT. The request blocks of the records are these bytes, whole and in their order,
and so are the response blocks: nothing is left over on either side but interim responses, which are no capture."""

import collections
import json
import os
import sys

import warc

FOLDER, PORT = sys.argv[1], sys.argv[2]

# The response block of each request block; a URI that was fetched twice has more.
responses, requests, chunked = {}, {}, []
for path in sys.argv[3:]:
    for record in warc.records(path):
        if record.kind == "response":
            responses[record.id] = record
            payload = record.payload()
            warc.expect(record.payload_digest == warc.sha1(payload), f"{record.uri}: another payload than its digest says")
            warc.expect(record.block_digest == warc.sha1(record.block), f"{record.uri}: another block than its digest says")
            if record.is_chunked():
                chunked.append(record.id)
        elif record.kind == "request":
            requests[record.concurrent_to] = record
warc.expect(set(responses) == set(requests), "a response has no request, or the reverse")
pairs = collections.defaultdict(list)
for record_id, response in responses.items():
    if f":{PORT}/" in response.uri:
        pairs[requests[record_id].block].append(response)
total = sum(len(found) for found in pairs.values())


def after_interim(data):
    """RFC 9110, 15.2: a client reads past responses with 1xx."""
    while data.startswith(b"HTTP/1.1 1"):
        data = data.partition(b"\r\n\r\n")[2]
    return data


matched, kinds = 0, collections.Counter()
for name in sorted(os.listdir(FOLDER)):
    if not name.endswith(".up"):
        continue
    with open(os.path.join(FOLDER, name), "rb") as file:
        up = file.read()
    with open(os.path.join(FOLDER, name[:-2] + "down"), "rb") as file:
        down = file.read()
    while up:
        block = next((block for block in pairs if pairs[block] and up.startswith(block)), None)
        warc.expect(block, f"{name}: no record has this request: {up[:200]}; the answer: {down[:200]}")
        up = up[len(block) :]
        down = after_interim(down)
        # The longest first: a body without a length may begin as another one does.
        found = sorted(pairs[block], key=lambda record: -len(record.block))
        found = next((record for record in found if down.startswith(record.block)), None)
        warc.expect(found, f"{name}: no record of {block[:100]} has this response: {down[:300]}")
        pairs[block].remove(found)
        down = down[len(found.block) :]
        matched += 1
        framing = "chunked" if found.is_chunked() else "length" if found.header("content-length") else "close"
        kinds[framing, found.header("content-encoding") or "identity"] += 1
    warc.expect(not down, f"{name}: the server sent more than the records have: {down[:300]}")
warc.expect(matched == total, f"{total - matched} records have no bytes on the wire")
kinds = {" ".join(kind): count for kind, count in kinds.items()}
json.dump({"exchanges": matched, "kinds": kinds, "chunked": chunked}, sys.stdout)
