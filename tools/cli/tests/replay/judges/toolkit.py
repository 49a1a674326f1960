"""cdx_toolkit, which knows the servers of pywb and of the Internet Archive, reads every page of a long answer, and the records.

Words: the base of the server, the number of captures below the host many.example, and a URL with its content in hexadecimal.
Prints what was counted.
"""

import collections
import json
import sys

import cdx_toolkit
from cdx_toolkit import myrequests

base, count, url, content = sys.argv[1], int(sys.argv[2]), sys.argv[3], bytes.fromhex(sys.argv[4])
counted = collections.Counter()
# It is polite to servers that it does not know. This one is ours.
myrequests.retry_info["127.0.0.1"] = {"next_fetch": 0, "minimum_interval": 0}

for name, source in (("pywb", f"{base}/all/cdx"), ("wayback", f"{base}/cdx/search/cdx")):
    client = cdx_toolkit.CDXFetcher(source=source, wb=f"{base}/all")
    for size in (None, 1):
        query = {"matchType": "host"}
        if size:
            query["pageSize"] = size
        seen = set()
        for capture in client.iter("http://many.example/", **query):
            place = (capture["urlkey"], capture["timestamp"])
            assert place not in seen, f"{name}: {place} twice"
            seen.add(place)
        assert len(seen) == count, f"{name}, pageSize {size}: {len(seen)} captures"
        counted[f"{name}, pageSize {size}"] = len(seen)
    # The client takes what pywb calls blocks, and what the Internet Archive calls pages.
    pages = client.get_size_estimate("http://many.example/", as_pages=True, matchType="host", pageSize=1)
    assert pages == -(-count // 3000), f"{name}: {pages} pages"

    wanted = {"from_ts": "2001", "to": "2003", "filter": ["=status:200"], "limit": 50}
    some = client.get("http://many.example/*", **wanted)
    assert len(some) == 50, len(some)
    for capture in some:
        assert "2001" <= capture["timestamp"][:4] <= "2003" and capture["status"] == "200", capture.data
    if name == "wayback":
        # pywb answers a whole question without captures with nothing at all, which this client cannot read.
        nothing = client.get("http://nothing.example/")
        assert nothing == [], nothing
    assert list(client.iter("http://nothing.example/")) == []

    (only,) = list(client.iter(url))
    record = only.fetch_warc_record()
    assert record.rec_headers.get_header("WARC-Target-URI") == url, record.rec_headers
    assert only.content == content, only.content[:200]
    counted[f"{name}, records"] += 1

print(json.dumps(counted))
