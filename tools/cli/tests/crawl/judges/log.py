"""Heritrix' crawl.log, progress-statistics.log and reports, and what NetarchiveSuite makes of them, by their formats alone."""

import collections
import datetime
import re

from warc import expect, fail

STATUSES = {1, 0, 1001, 2001, 2002, -1, -2, -3, -4, -5, -6, -7, -8, -50, -60, -61, -62, -63, -404, -3000, -4000, -4001, -4002}
STATUSES |= {-5000, -5001, -5002, -5003, -5004, -6000, -7000, -9998} | set(range(100, 600))
LINE = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) +(?P<status>-?\d+) +(?P<size>\d+|-) (?P<uri>[a-z]+:\S+) "
    r"(?P<hops>-|(?:\d+\+)?[LERXPIMS]+) (?P<via>\S+) (?P<mime>\S+) #(?P<thread>\d{3,}) (?P<begun>-|\d{17}\+\d+) "
    r"(?P<digest>-|sha1:[A-Z2-7]{32}) (?P<source>\S+) (?P<annotations>\S+)\n"
)
DISREGARDED = {-4001, -4002, -5000, -5001, -5002, -5003, -6000, -9998}


class Line:
    def __init__(self, text):
        match = LINE.fullmatch(text)
        expect(match, f"no line of a crawl log: {text}")
        self.__dict__.update(match.groupdict())
        expect(text[25:30] == self.status.rjust(5) or len(self.status) > 5, f"the status is not right-aligned: {text}")
        expect(text[31:41] == self.size.rjust(10), f"the size is not right-aligned: {text}")
        self.status = int(self.status)
        expect(self.status in STATUSES, f"no status: {text}")
        self.annotations = [] if self.annotations == "-" else self.annotations.split(",")
        expect((self.hops == "-") == (self.via == "-"), f"a seed has no via, and all others have: {text}")
        sizes = [text for text in self.annotations if text.startswith("content-size:")]
        expect(len(sizes) == (1 if self.status > 0 else 0), f"one content-size for what was fetched: {text}")
        self.bytes = int(sizes[0].split(":")[1]) if sizes else 0
        self.text = text
        if self.begun != "-":
            begun, took = self.begun.split("+")
            self.began = datetime.datetime.strptime(begun + "000", "%Y%m%d%H%M%S%f")
            self.ended = self.began + datetime.timedelta(milliseconds=int(took))
        logged = datetime.datetime.strptime(self.time, "%Y-%m-%dT%H:%M:%S.%fZ")
        expect(self.begun == "-" or logged >= self.began, f"logged before it began: {text}")

    def host(self):
        if self.uri.startswith("dns:"):
            return "dns:"
        return self.uri.split("/")[2].rsplit("@")[-1].rsplit(":")[0]

    def is_duplicate(self):
        return any(text == "duplicate" or text.startswith('duplicate:"') for text in self.annotations) and not self.is_unmodified()

    def is_unmodified(self):
        return self.status == 304 or "duplicate:server-not-modified" in self.annotations


def read(path):
    with open(path, encoding="ascii") as file:
        return [Line(text) for text in file]


# The legend and the column at whose end each value stands.
COLUMNS = {
    "discovered": 32, "queued": 44, "downloaded": 57, "doc/s(avg)": 74, "KB/s(avg)": 85, "dl-failures": 99, "busy-thread": 113,
    "mem-use-KB": 126, "heap-size-KB": 140, "congestion": 153, "max-depth": 165, "avg-depth": 177,
}  # fmt: skip
STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z"
ENDS = ["", " - Ended by operator", " - Timelimit hit", " - Maximum amount of data limit hit",
        " - Maximum number of documents limit hit", " - Abnormal exit from crawling"]  # fmt: skip


def check_progress(path):
    """Gives the last line."""
    with open(path, encoding="ascii") as file:
        legend, *lines = file.read().splitlines()
    for name, end in COLUMNS.items():
        expect(legend[:end].endswith(" " + name), f"the legend has no {name} that ends at column {end}: {legend}")
    samples = 0
    for line in lines:
        expect(re.match(STAMP + " ", line), f"no time begins this line: {line}")
        if re.search(r" CRAWL (RUNNING|WAITING|PAUSED|EMPTY|ENDING|ENDED) - ", line):
            continue
        samples += 1
        start = line.index(" ")
        for name, end in COLUMNS.items():
            value = line[start:end].strip()
            # Rates are given with their average; a value that is not known is `-`, or NaN in old logs.
            expect(re.fullmatch(r"[\d.,\-]+(\([\d.,\-]+\))?", value), f"{name} is {value}: {line}")
            expect(len(line) >= end and line[end - 1] != " ", f"{name} does not end at column {end}: {line}")
            start = end
    expect(samples, "no line of numbers stands in the log")
    expect(" CRAWL RUNNING - " in lines[0], f"it begins otherwise: {lines[0]}")
    message = lines[-1].partition(" CRAWL ENDED - Finished")
    expect(message[1] and message[2] in ENDS, f"it ends otherwise: {lines[-1]}")
    return lines[-1]


def rows(path, header):
    with open(path, encoding="utf-8") as file:
        first, *lines = file.read().splitlines()
    expect(first == header, f"{path} begins with {first}")
    return [line.split(" ") for line in lines if line.strip()]


def check_counts(name, found, expected):
    """`found`: rows of a count, more numbers and a name, by descending count."""
    counts = [int(row[0]) for row in found]
    expect(counts == sorted(counts, reverse=True), f"{name} is not sorted: {found}")
    as_dict = {row[-1]: tuple(int(cell) for cell in row[:-1]) for row in found}
    expect(as_dict == expected, f"{name} has {as_dict} and the log has {expected}")


CRAWL_REPORT = [
    "crawl name", "crawl status", "duration", "seeds crawled", "seeds uncrawled", "hosts visited", "URIs processed", "URI successes",
    "URI failures", "URI disregards", "novel URIs", "duplicate-by-hash URIs", "not-modified URIs", "total crawled bytes",
    "novel crawled bytes", "duplicate-by-hash crawled bytes", "not-modified crawled bytes", "URIs/sec", "KB/sec",
]  # fmt: skip
FRONTIER_LINE = re.compile(
    r"\S+ \d+ \d+ \d+ -?\d+ \d+\((?:\d+(?:\.\d+)?|NaN)\) (?:-|\S+) (?:-|\S+) \d+/-?\d+ \d+ \S+ \S+"
)


def check_reports(folder, lines, seeds):
    fetched = [line for line in lines if line.status > 0]
    new = [line for line in fetched if not line.is_duplicate() and not line.is_unmodified()]
    same = [line for line in fetched if line.is_duplicate()]
    unmodified = [line for line in fetched if line.is_unmodified()]
    size = lambda found: sum(line.bytes for line in found)

    with open(f"{folder}/crawl-report.txt", encoding="utf-8") as file:
        report = dict(line.split(": ", 1) for line in file.read().splitlines() if line.strip())
    expect([key for key in report if key in CRAWL_REPORT] == CRAWL_REPORT, f"crawl-report.txt has {list(report)}")
    disregards = [line for line in lines if line.status in DISREGARDED]
    expected = {
        "URIs processed": len(lines),
        "URI successes": len(fetched),
        "URI failures": len(lines) - len(fetched) - len(disregards),
        "URI disregards": len(disregards),
        "novel URIs": len(new),
        "duplicate-by-hash URIs": len(same),
        "not-modified URIs": len(unmodified),
        "total crawled bytes": size(fetched),
        "novel crawled bytes": size(new),
        "duplicate-by-hash crawled bytes": size(same),
        "not-modified crawled bytes": size(unmodified),
    }
    for key, value in expected.items():
        expect(int(report[key].split()[0]) == value, f"crawl-report.txt: {key} is {report[key]}; the log has {value}")

    by_uri = {line.uri: line for line in lines}
    crawled = {seed for seed in seeds if seed in by_uri and by_uri[seed].status > 0}
    expect(int(report["seeds crawled"]) == len(crawled), "seeds crawled")
    expect(int(report["seeds uncrawled"]) == len(seeds) - len(crawled), "seeds uncrawled")
    found = rows(f"{folder}/seeds-report.txt", "[code] [status] [seed] [redirect]")
    expect({row[2] for row in found} == set(seeds) and len(found) == len(seeds), f"seeds-report.txt has {found}")
    for code, state, seed, *redirect in found:
        expect(state == ("CRAWLED" if seed in crawled else "NOTCRAWLED"), f"{seed} is {state}")
        expect(seed not in by_uri or int(code) == by_uri[seed].status, f"{seed} has {code}")
        target = [line.uri for line in lines if line.via == seed and line.hops == "R"]
        expect([cell for cell in redirect if cell] == target, f"{seed} leads to {redirect}, in the log to {target}")

    def grouped(key, value, found=fetched):
        groups = collections.defaultdict(list)
        for line in found:
            groups[str(key(line))].append(line)
        return {name: value(found) for name, found in groups.items()}

    check_counts(
        "mimetype-report.txt",
        rows(f"{folder}/mimetype-report.txt", "[#urls] [#bytes] [mime-types]"),
        grouped(lambda line: line.mime, lambda found: (len(found), size(found))),
    )
    check_counts(
        "responsecode-report.txt",
        rows(f"{folder}/responsecode-report.txt", "[#urls] [rescode]"),
        grouped(lambda line: line.status, lambda found: (len(found),)),
    )
    header = "[#urls] [#bytes] [host] [#robots] [#remaining] [#novel-urls] [#novel-bytes] [#dup-by-hash-urls] [#dup-by-hash-bytes]"
    found = rows(f"{folder}/hosts-report.txt", header + " [#not-modified-urls] [#not-modified-bytes]")
    counts = [int(row[0]) for row in found]
    expect(counts == sorted(counts, reverse=True), "hosts-report.txt is not sorted")
    hosts = {row[2]: row[:2] + row[3:4] + row[5:] for row in found}
    expected = {}
    for host in {line.host() for line in lines if line.status > 0 or line.status == -9998}:
        own = lambda found: [line for line in found if line.host() == host]
        robots = [line for line in lines if line.status == -9998 and line.host() == host]
        values = [len(own(fetched)), size(own(fetched)), len(robots)]
        for part in (new, same, unmodified):
            values += [len(own(part)), size(own(part))]
        expected[host] = [str(value) for value in values]
    expect(hosts == expected, f"hosts-report.txt has {hosts} and the log has {expected}")
    expect(int(report["hosts visited"]) == len([host for host in hosts if host != "dns:"]), "hosts visited")

    found = {tuple(row[:2]): int(row[2]) for row in rows(f"{folder}/source-report.txt", "[source] [host] [#urls]")}
    tagged = [line for line in fetched if line.source != "-"]
    expected = collections.Counter((line.source, line.host()) for line in tagged)
    expect(found == expected, f"source-report.txt has {found} and the log has {expected}")
    with open(f"{folder}/processors-report.txt", encoding="utf-8") as file:
        text = file.read().lower()
    for chain in ("candidate", "fetch", "disposition"):
        expect(chain in text, f"processors-report.txt has no chain {chain}")
    with open(f"{folder}/threads-report.txt", encoding="utf-8") as file:
        expect(file.read().strip(), "threads-report.txt is empty")
    for name in ("summary", "nonempty"):
        with open(f"{folder}/frontier-{name}-report.txt", encoding="utf-8") as file:
            text = file.read()
        expect(text.strip(), f"frontier-{name}-report.txt is empty")
        for line in text.splitlines():
            if len(line.split()) == 12 and "/" in line.split()[8] and not line.startswith("queue "):
                expect(FRONTIER_LINE.fullmatch(line), f"frontier-{name}-report.txt: {line}")


def domain_report(lines, last_progress):
    """The domains of NetarchiveSuite's harvest report: objects, bytes, and why each stopped."""
    default = "download complete"
    if "CRAWL ENDED" not in last_progress or "Ended by operator" in last_progress:
        default = "download unfinished"
    elif "Timelimit hit" in last_progress:
        default = "time limit"
    domains = {}
    for line in lines:
        domain = domains.setdefault(line.host(), {"objects": 0, "bytes": 0, "stop_reason": default})
        if line.status >= 0:
            domain["objects"] += 1
            domain["bytes"] += line.bytes
        if line.status == -5003 and domain["stop_reason"] == default:
            for annotation, reason in (("Q:groupMaxAllKb", "size limit"), ("Q:groupMaxFetchSuccesses", "object limit")):
                if annotation in line.annotations:
                    domain["stop_reason"] = reason
    return domains
