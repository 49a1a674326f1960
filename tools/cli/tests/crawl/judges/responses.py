"""Lists the responses of WARC files: responses.py WARC... prints a JSON object of URI and the number of its response records.

Each record is whole, and its digests are right."""

import collections
import json
import sys

import warc

counts, ids = collections.Counter(), set()
for path in sys.argv[1:]:
    for record in warc.records(path):
        warc.expect(record.id not in ids, f"two records have the id {record.id}")
        ids.add(record.id)
        if record.block_digest:
            warc.expect(record.block_digest == warc.sha1(record.block), f"{record.id}: another block than its digest says")
        if record.kind == "response":
            warc.expect(record.payload_digest == warc.sha1(record.payload()), f"{record.uri}: another payload than its digest says")
            counts[record.uri] += 1
json.dump(counts, sys.stdout)
