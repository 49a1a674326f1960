"""Every capture that cdxj-indexer sees in a file is found in the three dialects, with the same fields, and no other one is.

Words: the base of the server, then COLLECTION=NAME=PATH for each file. Prints how much was compared, and the files on which
cdxj-indexer gives up.
"""

import collections
import json
import sys
import urllib.parse

from common import Server, bare, lines_of, samples

# Two lines of this file say no length: cdxj-indexer takes none for nothing, we take what comes before the next record.
DEVIATES = {"webrecorder_warcio--bad.arc"}
# The record of this URL calls its block an image, and the block begins like HTTP: cdxj-indexer believes the block, we the record.
IMAGE = "http://whensAPNGNotAPing.net"

server = Server(sys.argv[1])
compared = collections.Counter()
faults = []
given_up = []


def told(lines):
    """The lines in the words of CDX servers."""
    found = []
    for key, timestamp, fields in lines:
        if fields["url"] == IMAGE:
            continue
        found.append(
            (
                key,
                timestamp,
                fields["url"],
                fields.get("mime") or "-",
                fields.get("status") or "-",
                bare(fields.get("digest")),
                fields["length"],
                fields["offset"],
            )
        )
    return sorted(found)


def pywb_rows(collection, name, **query):
    """NDJSON, as pywb's CDX server has it."""
    status, fields, text = server.query(f"/{collection}/cdx", output="json", **query)
    if status == 404:
        return []
    assert status == 200, (query, status, text)
    assert fields["content-type"].split(";")[0] == "text/x-ndjson", fields["content-type"]
    rows = []
    for line in text.splitlines():
        row = json.loads(line)
        assert all(isinstance(value, str) for value in row.values()), row
        assert row["filename"] == name, (row, name)
        cells = ["urlkey", "timestamp", "url", "mime", "status", "digest", "length", "offset"]
        cells = [row.get(cell) or "-" for cell in cells]
        cells[5] = bare(cells[5])
        rows.append(tuple(cells))
    return rows


def wayback_rows(name, **query):
    """An array of arrays with a head, as the CDX server of the Internet Archive has it."""
    wanted = ["urlkey", "timestamp", "original", "mimetype", "statuscode", "digest", "length"]
    status, _fields, text = server.query("/cdx/search/cdx", output="json", **query)
    assert status == 200, (query, status, text)
    rows = json.loads(text) if text else []
    if rows:
        assert rows.pop(0) == wanted, rows
    return [(*row[:5], bare(row[5]), row[6]) for row in rows]


def outback_rows(collection, name, **query):
    """Lines of eleven columns, as OutbackCDX has them."""
    status, fields, text = server.query(f"/{collection}", **query)
    assert status == 200, (query, status, text)
    assert fields["content-type"].split(";")[0] == "text/plain", fields["content-type"]
    rows = []
    for line in text.splitlines():
        cells = line.split(" ")
        assert len(cells) == 11, line
        assert cells[10] == name, line
        rows.append((*cells[:5], bare(cells[5]), cells[8], cells[9]))
    return rows


# What cdxj-indexer writes where a record has no digest: it has read the payload already when it computes one.
NOTHING = "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ"


def agree(expected, found):
    """Whether two rows are of the same capture. What cdxj-indexer does not know, it cannot judge: the media type of records without
    a head of HTTP, such as those of DNS in ARC files, and a digest that no record has."""
    for cell, (here, there) in enumerate(zip(expected, found)):
        if cell == 2:
            # It writes blanks in another way; we tell the URL as the record has it.
            there = there.replace(" ", "%20")
        if here != there and not (cell == 3 and here == "-") and not (cell == 5 and here in (NOTHING, "-")):
            return False
    return len(expected) == len(found)


def same(expected, found):
    """Whether every row has its partner, and no row has none."""
    left = list(found)
    for row in expected:
        partner = next((own for own in left if agree(row, own)), None)
        if partner is None:
            return False
        left.remove(partner)
    return not left


def compare(what, expected, found):
    compared[what.split(" ")[0]] += len(expected)
    if same(expected, found):
        return
    missing = sorted(set(expected) - set(found))[:3]
    more = sorted(set(found) - set(expected))[:3]
    faults.append(f"{what}: {len(expected)} expected, {len(found)} found\n  missing {missing}\n  more {more}")


everything = []
for collection, name, path in samples(sys.argv[2:]):
    lines = lines_of(path)
    if lines is None or name in DEVIATES:
        given_up.append(name)
        continue
    expected = told(lines)
    everything += expected
    by_url = collections.defaultdict(list)
    for line in expected:
        by_url[line[0]].append(line)
    for key, group in by_url.items():
        if "__wb_method" in key:
            continue
        # A URL that ends with a star is not a pattern.
        found = pywb_rows(collection, name, url=group[0][2], matchType="exact")
        compare(f"pywb {name} {group[0][2]}", group, found)
    # Only those of the web have a host.
    hosts = {urllib.parse.urlsplit(line[2]).hostname for line in expected if line[2].startswith("http")}
    for host in sorted(host for host in hosts if host):
        own = [line for line in expected if (urllib.parse.urlsplit(line[2]).hostname or "").removeprefix("www.") == host.removeprefix("www.")]
        found = outback_rows(collection, name, url=f"http://{host}/", matchType="host")
        compare(f"outback {name} {host}", own, found)

# The path of the Internet Archive names no collection, and its rows name no file: all captures of a URL at once. The files on
# which cdxj-indexer gives up have some of those too.
union = collections.defaultdict(set)
for line in everything:
    union[line[0]].add(line[:7])
others = set(given_up)
for key, group in sorted(union.items()):
    if "__wb_method" in key:
        continue
    url = sorted(group)[0][2]
    found = set(wayback_rows(None, url=url, matchType="exact"))
    status, _fields, text = server.query("/all/cdx", output="json", url=url, matchType="exact")
    files = {json.loads(line)["filename"] for line in text.splitlines()}
    compared["wayback"] += len(group)
    missing = [row for row in group if not any(agree(row, own) for own in found)]
    more = [own for own in found if not any(agree(row, own) for row in group)]
    if missing or (more and not files & others):
        faults.append(f"wayback {url}\n  missing {missing[:3]}\n  more {more[:3]}")

if faults:
    sys.exit(f"{len(faults)} differ:\n" + "\n".join(faults[:40]))
print(json.dumps({"compared": compared, "given_up": given_up}))
