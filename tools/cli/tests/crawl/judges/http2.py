"""Reads the captures of a server that speaks HTTP/2 alone: http2.py CERTIFICATE WARC...

Each has WARC-Protocol h2 and is written in the text of HTTP/1.1, its metadata record names the certificate, and warcinfo says that
such messages are rewritten."""

import hashlib
import json
import re
import ssl
import sys

import warc
from warc import expect

with open(sys.argv[1], encoding="ascii") as file:
    fingerprint = hashlib.sha256(ssl.PEM_cert_to_DER_cert(file.read())).hexdigest()

captured, said = 0, False
for path in sys.argv[2:]:
    for record in warc.records(path):
        if record.kind == "warcinfo":
            said |= b"WARC-Protocol: h2" in record.block
        if record.kind in ("response", "request"):
            expect("h2" in (record.protocol or "").split(), f"{record.uri}: the protocol {record.protocol}")
        if record.kind == "request":
            start = record.http()[0][0]
            expect(re.fullmatch(rb"GET /\S* HTTP/1\.1", start), f"{record.uri}: {start}")
            expect(record.header("host") == record.uri.split("/")[2], f"{record.uri}: the host {record.header('host')}")
        if record.kind == "response":
            lines, body = record.http()
            expect(re.fullmatch(rb"HTTP/1\.1 \d{3} ", lines[0]), f"{record.uri}: {lines[0]}")
            expect(not any(line.startswith(b":") for line in lines), f"{record.uri}: a pseudo field stands in the head")
            expect(not record.is_chunked(), f"{record.uri}: HTTP/2 has no chunks")
            expect(record.payload_digest == warc.sha1(body), f"{record.uri}: another payload than its digest says")
            captured += 1
        if record.kind == "metadata":
            fields = dict(line.split(": ", 1) for line in record.block.decode().splitlines() if ": " in line)
            found = fields.get("tlsCertificateSha256", "").replace(":", "").lower()
            expect(found == fingerprint, f"{record.uri}: the certificate {found}, not {fingerprint}")
            expect(fields.get("tlsVersion") and fields.get("tlsCipher"), f"{record.uri}: {fields}")
            expect(fields.get("tlsCertificateVerdict", "tls:good") != "tls:good", f"{record.uri}: nobody vouches for it")
expect(said, "warcinfo does not say that messages are rewritten")
json.dump({"captured": captured}, sys.stdout)
