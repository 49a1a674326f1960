"""Follows the revisit records of a crawl to the records that they are about (ISO 28500:2017, 6.7, and NetarchiveSuite's annotation):
revisits.py CRAWL-LOG EARLIER... -- LATER...

EARLIER are the files of earlier crawls, LATER those of the crawl with that log."""

import collections
import json
import os
import re
import sys

import warc
from warcio.archiveiterator import ArchiveIterator

PROFILE = "http://netpreserve.org/warc/1.1/revisit/"
ORIGIN = re.compile(r'duplicate:"([^",]+),(\d+),(\d{14,17})"')

log, *files = sys.argv[1:]
split = files.index("--")
earlier_files, later_files = files[:split], files[split + 1 :]
paths = {os.path.basename(path): path for path in earlier_files}

# The responses by URI and date: two of one second are told apart by their ids.
earlier, revisited, first_bytes = collections.defaultdict(list), set(), 0
for path in earlier_files:
    for record in warc.records(path):
        if record.kind == "response":
            earlier[record.uri, record.date].append(record)
            first_bytes += len(record.payload())
        elif record.kind == "revisit":
            revisited.add(record.id)


def original_of(record):
    found = earlier[record.refers_to_target_uri, record.refers_to_date]
    if record.refers_to:
        warc.expect(record.refers_to not in revisited, f"{record.uri}: a revisit of a revisit")
        found = [one for one in found if one.id == record.refers_to]
    warc.expect(found, f"{record.uri}: no response {record.refers_to} of {record.refers_to_target_uri}, {record.refers_to_date}")
    return found[0]


profiles, responses, requests, new_bytes, revisits = collections.Counter(), [], {}, 0, {}
for path in later_files:
    for record in warc.records(path):
        if record.kind == "response":
            responses.append(record.uri)
            new_bytes += len(record.payload())
        elif record.kind == "request":
            requests[record.concurrent_to] = record
        elif record.kind == "revisit":
            revisits[record.id] = record

for record_id, record in revisits.items():
    warc.expect(record.profile.startswith(PROFILE), f"{record.uri}: profile {record.profile}")
    warc.expect(record.fields["content-type"].replace(" ", "") == "application/http;msgtype=response", f"{record.uri}: type")
    profile = record.profile[len(PROFILE) :]
    profiles[profile] += 1
    original = original_of(record)
    request = requests[record_id]
    head, body = record.http()
    if profile == "identical-payload-digest":
        warc.expect(record.payload_digest == original.payload_digest, f"{record.uri}: another payload than its original")
        warc.expect(record.status() == 200 and not body, f"{record.uri}: a head and nothing else stands in the block")
        warc.expect(record.truncated == "length", f"{record.uri}: the block is cut and does not say so")
    else:
        warc.expect(profile == "server-not-modified", f"{record.uri}: profile {profile}")
        warc.expect(record.status() == 304, f"{record.uri}: status {record.status()}")
        warc.expect(record.payload_digest in (None, original.payload_digest), f"{record.uri}: another payload than its original")
        warc.expect(request.header("if-none-match") == original.header("etag"), f"{record.uri}: another ETag was sent")
        warc.expect(request.header("if-modified-since") == original.header("last-modified"), f"{record.uri}: another date was sent")

# Each line of a revisit names the file and the offset of the first capture.
annotated = set()
with open(log, encoding="utf-8") as lines:
    for line in lines:
        fields = line.split()
        found = ORIGIN.search(fields[11])
        if not found:
            continue
        name, offset, stamp = found.groups()
        warc.expect(name in paths, f"{fields[3]}: its origin is in {name}, which no crawl has written")
        with open(paths[name], "rb") as file:
            file.seek(int(offset))
            record = warc.Record(name, next(iter(ArchiveIterator(file, no_record_parse=True))))
        warc.expect((record.kind, record.uri) == ("response", fields[3]), f"{fields[3]}: its origin is {record.kind} {record.uri}")
        digits = re.sub(r"\D", "", record.date)
        warc.expect(stamp.startswith(digits), f"{fields[3]}: its origin is of {record.date} and not of {stamp}")
        annotated.add(fields[3])
warc.expect(annotated == {record.uri for record in revisits.values()}, "a revisit has no annotation, or the reverse")
json.dump({"profiles": profiles, "responses": responses, "first": first_bytes, "new": new_bytes}, sys.stdout)
