"""Reads what a crawl has of httpbin: services.py BASE USER PASSWORD WARC...

Gives the status of each response, and by its path the JSON document in its body. No record has what was sent to log in."""

import base64
import gzip
import json
import re
import sys
import zlib

import warc

base, user, password = sys.argv[1:4]
basic = base64.b64encode(f"{user}:{password}".encode())
found = {}
for path in sys.argv[4:]:
    for record in warc.records(path):
        is_login = record.kind == "request" and re.search(rb"(?im)^authorization:", record.block)
        # The server says in its responses what it was sent.
        is_own = record.kind != "response"
        warc.expect(not is_login and not (is_own and basic in record.block), f"{record.kind} {record.uri} has a password")
        if record.kind != "response" or not record.uri.startswith(base):
            continue
        payload = record.payload()
        warc.expect(record.payload_digest == warc.sha1(payload), f"{record.uri}: another payload than its digest says")
        coding = record.header("content-encoding")
        # The content coding stays in the record.
        if coding == "gzip":
            payload = gzip.decompress(payload)
        elif coding == "deflate":
            payload = zlib.decompress(payload)
        try:
            document = json.loads(payload)
        except ValueError:
            document = None
        path = record.uri[len(base) :]
        # The demand for a user is a response of its own.
        warc.expect(path not in found or found[path]["status"] == 401, f"{record.uri} has two responses")
        found[path] = {"status": record.status(), "coding": coding, "chunked": record.is_chunked(), "document": document}
json.dump(found, sys.stdout)
