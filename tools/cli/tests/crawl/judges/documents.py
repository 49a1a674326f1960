"""Reads all that a job documents, by the formats of Heritrix, NetarchiveSuite and ISO 28500: documents.py JOB-FOLDER REPORT FLAGS

REPORT is the file with what `holdfast crawl --json` printed; FLAGS may name what else has to be there: `dedup=1,2` jobs that were
deduplicated against. The identity is job 12 of harvest 34 of example.dk."""

import hashlib
import json
import os
import re
import sys
import xml.etree.ElementTree as xml

import log
import warc
from warc import expect
from warcio.archiveiterator import ArchiveIterator

FOLDER = sys.argv[1]
with open(sys.argv[2], encoding="utf-8") as file:
    REPORT = json.load(file)
FLAGS = dict(flag.split("=") for flag in sys.argv[3:])
ORG = "metadata://example.dk/crawl/"
IDENTITY = "harvestid=34&jobid=12"


def names(folder):
    return sorted(os.listdir(os.path.join(FOLDER, folder)))


def text_of(folder, name):
    with open(os.path.join(FOLDER, folder, name), "rb") as file:
        return file.read()


def fields_of(block):
    """application/warc-fields"""
    lines = block.decode().split("\r\n")
    expect(lines.pop() == "", "the last line has no end")
    return [tuple(line.split(": ", 1)) for line in lines if line]


# The harvest.
info = xml.fromstring(text_of("", "harvestInfo.xml"))
expect(info.tag == "harvestInfo", "the root of harvestInfo.xml")
values = {child.tag: (child.text or "") for child in info}
expect((values["version"], values["jobId"], values["origHarvestDefinitionID"]) == ("0.6", "12", "34"), f"harvestInfo.xml: {values}")
for key in ("channel", "harvestNum", "maxBytesPerDomain", "maxObjectsPerDomain", "templateName", "origHarvestDefinitionName",
            "harvestFilenamePrefix", "jobSubmitDate"):  # fmt: skip
    expect(key in values, f"harvestInfo.xml has no {key}")
expect(values["harvestFilenamePrefix"] == "12-34", f"the prefix is {values['harvestFilenamePrefix']}")


def check_warcinfo(record, name):
    expect(record.kind == "warcinfo" and record.filename == name, f"{name} begins with {record.kind} {record.filename}")
    expect(record.fields["content-type"] == "application/warc-fields", f"{name}: the type of warcinfo")
    found = fields_of(record.block)
    keys = dict(found)
    for key in ("software", "ip", "hostname", "format", "conformsTo", "isPartOf", "robots", "http-header-user-agent"):
        expect(key in keys, f"{name}: warcinfo has no {key}")
    expect(keys["isPartOf"] == "12" and keys["format"] == "WARC File Format 1.1", f"{name}: {keys}")
    harvest = {key.split(".", 1)[1]: value for key, value in found if key.startswith("harvestInfo.")}
    expect(harvest == {key: value for key, value in values.items() if value}, f"{name}: harvestInfo in warcinfo: {harvest}")


def records_with_offsets(path):
    with open(path, "rb") as file:
        reader = ArchiveIterator(file, no_record_parse=True)
        for record in reader:
            read = warc.Record(path, record)
            yield reader.get_record_offset(), read


HEADER_ENDS = ["WARC-Record-ID", "Content-Type", "Content-Length"]


def check_header(record):
    expect(record.version == "WARC/1.1", f"{record.id} is {record.version}")
    expect(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", record.date), f"the date {record.date}")
    expect(re.fullmatch(r"<urn:uuid:[0-9a-f-]{36}>", record.id), f"the id {record.id}")
    order = [name for name in record.names if name in ("WARC-Type", "WARC-Target-URI", "WARC-Date")]
    expect(record.names[0] == "WARC-Type" and order == sorted(order, key=["WARC-Type", "WARC-Target-URI", "WARC-Date"].index),
           f"the order of {record.names}")  # fmt: skip
    if record.block:
        expect("content-type" in record.fields, f"{record.id} has no Content-Type")


# The archive files.
lines = log.read(os.path.join(FOLDER, "logs/crawl.log"))
# A URI that asked for a user has two lines.
by_uri = {(line.uri, line.status): line for line in lines}
expect(len(by_uri) == len(lines), "a URI stands twice in the log")
twice = {uri for uri, _ in by_uri if sum(uri == other for other, status in by_uri if status != 401) > 1}
expect(not twice, f"these were fetched twice: {twice}")
cdx, captures, seen = {}, {}, set()
for name in names("warcs"):
    expect(re.fullmatch(r"12-34-\d{17}-\d{5}-[A-Za-z0-9.-]+\.warc\.gz", name), f"the name {name}")
    lines_of_file, group = [], []
    for offset, record in records_with_offsets(os.path.join(FOLDER, "warcs", name)):
        check_header(record)
        if offset == 0:
            check_warcinfo(record, name)
            continue
        expect(record.warcinfo_id is None or re.fullmatch(r"<urn:uuid:\S+>", record.warcinfo_id), f"{record.uri}: warcinfo")
        if record.kind == "resource":
            expect(record.uri.startswith("dns:") and record.fields["content-type"].startswith("text/dns"), f"{record.uri}: a resource")
            continue
        if record.kind in ("response", "revisit"):
            expect(len(group) in (0, 3), f"{record.uri}: response, request and metadata follow each other")
            group = [record]
            key = record.uri, record.status()
            expect(key in by_uri, f"{key} is not in the log")
            line = by_uri[key]
            expect(key not in seen, f"{key} was captured twice")
            seen.add(key)
            mime = (record.header("content-type") or "unknown").split(";")[0].strip() or "unknown"
            expect(line.mime == mime, f"{record.uri}: {line.mime} in the log, {mime} in the response")
            if record.kind == "response":
                expect(line.bytes == len(record.block), f"{record.uri}: content-size:{line.bytes}, and {len(record.block)} are recorded")
                expect(int(line.size) == len(record.http()[1]), f"{record.uri}: the size {line.size}")
                expect(line.digest == record.payload_digest, f"{record.uri}: the digest {line.digest}")
                md5 = hashlib.md5(record.http()[1]).hexdigest()
                date = re.sub(r"\D", "", record.date)
                mime = mime if record.header("content-type") else "-"
                lines_of_file.append([record.uri, record.ip_address, date, mime, str(len(record.block)), name, str(offset), md5])
            validators = record.header("etag"), record.header("last-modified")
            captures[record.uri, name, str(offset)] = (record.id.strip("<>"), record.payload_digest, str(record.status()), *validators)
        else:
            expect(group and record.concurrent_to == group[0].id, f"{record.uri}: concurrent to {record.concurrent_to}")
            expect(record.kind == ["", "request", "metadata"][len(group)], f"{record.uri}: {record.kind} out of order")
            expect(record.uri == group[0].uri, f"{record.uri} stands beside {group[0].uri}")
            group.append(record)
        if record.kind == "metadata":
            keys = dict((field + ("",))[:2] for field in fields_of(record.block))
            expect(("seed" in keys or keys.get("seed:") is not None or "seed: " in record.block.decode()) == (line.hops == "-"), f"{record.uri}: {keys}")
            expect(line.hops == "-" or (keys["hopsFromSeed"], keys["via"]) == (line.hops, line.via), f"{record.uri}: {keys}")
            expect(keys["fetchTimeMs"] == line.begun.split("+")[1], f"{record.uri}: {keys}")
    cdx[name] = lines_of_file
fetched = {(line.uri, line.status) for line in lines if line.status > 1}
expect(seen == fetched, f"fetched and not captured: {fetched - seen}; captured and not logged: {seen - fetched}")

# The logs and reports.
last_line = log.check_progress(os.path.join(FOLDER, "logs/progress-statistics.log"))
seeds = text_of("", "seeds.txt").decode().splitlines()
log.check_reports(os.path.join(FOLDER, "reports"), lines, seeds)
domains = {domain.pop("domain"): domain for domain in REPORT["domains"]}
left = [domain.pop("remaining") for domain in domains.values()]
expect(all(isinstance(count, int) for count in left), f"the domains have {left} URIs left")
# What goes before the URIs of a host is no object of its domain.
expected = log.domain_report([line for line in lines if not line.hops.endswith("P")], last_line)
expect(domains == expected, f"the domains are {domains}, and by the log {expected}")
found = log.rows(os.path.join(FOLDER, "reports/archivefiles-report.txt"), "[ARCHIVEFILE] [Closed] [Size]")
sizes = {name: os.path.getsize(os.path.join(FOLDER, "warcs", name)) for name in names("warcs")}
expect({row[0]: int(row[2]) for row in found} == sizes, f"archivefiles-report.txt has {found}")
for row in found:
    expect(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", row[1]), f"closed at {row[1]}")

# The metadata file.
expect(names("metadata") == ["12-metadata-1.warc.gz"], f"the metadata files are {names('metadata')}")
path = os.path.join(FOLDER, "metadata/12-metadata-1.warc.gz")
(_, warcinfo), *documents = records_with_offsets(path)
check_header(warcinfo)
check_warcinfo(warcinfo, "12-metadata-1.warc.gz")
uri = f"{ORG}setup/duplicatereductionjobs?majorversion=1&minorversion=0&harvestid=34&harvestnum=0&jobid=12"
expected = [(uri, "text/plain", FLAGS.get("dedup", "").encode())]
known = {name: text_of("reports", name) for name in names("reports")}
known.update({name: text_of("logs", name) for name in names("logs")})
for name in ("seeds.txt", "harvestInfo.xml"):
    known[name] = text_of("", name)
by_document = {}
sections = []
for _, record in documents:
    check_header(record)
    expect(record.kind == "resource", f"{record.uri} is a {record.kind}")
    expect(record.warcinfo_id == warcinfo.id and record.ip_address, f"{record.uri}: warcinfo and address")
    expect(record.block_digest == warc.sha1(record.block), f"{record.uri}: its digest")
    expect(record.uri.startswith(ORG), f"{record.uri}: the organisation")
    section, name, query = re.fullmatch(r"(setup|reports|logs|index)/([^/?]+)\?(.*)", record.uri[len(ORG) :]).groups()
    sections.append((section, name, query, record))
pre = [found for found in sections if found[0] == "setup" and found[1] in ("aliases", "duplicatereductionjobs")]
expect(sections[: len(pre)] == pre, "what was known before the harvest stands first")
expect([(found[3].uri, found[3].fields["content-type"], found[3].block) for found in pre] == expected,
       f"before the harvest: {[found[3].uri for found in pre]}, expected {expected}")  # fmt: skip
files = [found for found in sections[len(pre) :] if found[0] != "index"]
order = [(["setup", "reports", "logs"].index(section), record.uri) for section, _, _, record in files]
expect(order == sorted(order), f"the order of {order}")
for section, name, query, record in files:
    expect(re.fullmatch(rf"heritrixVersion=[^&]+&{IDENTITY}", query), f"{record.uri}: the query")
    is_xml = section == "setup" and name.endswith(".xml")
    expect(record.fields["content-type"] == ("text/xml" if is_xml else "text/plain"), f"{record.uri}: the type")
    kind = "reports" if name.endswith("-report.txt") else "logs" if re.search(r"\.(log|out)$", name) else "setup"
    expect(section == kind, f"{record.uri}: the section")
    expect(name not in known or record.block == known[name], f"{record.uri}: other bytes than the file")
    by_document[name] = record
REPORTS = ["archivefiles", "crawl", "frontier-nonempty", "frontier-summary", "hosts", "mimetype", "processors", "responsecode", "seeds",
           "source", "threads"]  # fmt: skip
required = [f"{name}-report.txt" for name in REPORTS] + ["seeds.txt", "harvestInfo.xml"]
required += ["crawl.log", "progress-statistics.log", "runtime-errors.log", "uri-errors.log"]
missing = [name for name in required if name not in by_document]
expect(not missing, f"the metadata file has no {missing}")
indexes = sections[len(pre) + len(files) :]
expect(all(found[0] == "index" for found in indexes), "a file stands behind the indexes")
found = {}
for _, name, query, record in indexes:
    if name == "cdx":
        file = re.fullmatch(rf"majorversion=2&minorversion=0&{IDENTITY}&filename=(.*)", query).group(1)
        expect(record.fields["content-type"] == "application/x-cdx", f"{record.uri}: the type")
        expect(file not in found, f"{file} has two indexes")
        found[file] = [line.split(" ") for line in record.block.decode().splitlines()]
    else:
        expect(name == "captures" and record.fields["content-type"] == "application/x-cdxj", f"{record.uri}: its name and type")
        expect(re.fullmatch(rf"majorversion=1&minorversion=0&{IDENTITY}&filename=(.*)", query), f"{record.uri}: the query")
        for line in record.block.decode().splitlines():
            _, stamp, fields = line.split(" ", 2)
            fields = json.loads(fields)
            keys = [fields.get(key) for key in ("recordId", "digest", "status", "etag", "lastModified")]
            expected = captures.pop((fields["url"], fields["filename"], fields["offset"]), None)
            expect(expected and keys == list(expected), f"the capture {line}; the record has {expected}")
            expect(re.fullmatch(r"\d{14}", stamp), f"the time of the capture {line}")
expect(not captures, f"no capture is listed of {list(captures)[:5]}")
expect(set(found) == set(cdx), f"there is an index of {set(found)}")
for file, rows in found.items():
    expect(sorted(rows) == sorted(cdx[file]), f"the index of {file}: {sorted(rows)[:3]}; the file: {sorted(cdx[file])[:3]}")
expect(not any(b"secret" in record.block for _, record in documents), "a password stands in the metadata file")
json.dump({"lines": len(lines), "captured": len(seen), "statuses": sorted({line.status for line in lines})}, sys.stdout)
