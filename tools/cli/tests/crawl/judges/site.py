"""Compares the captures of a site with its files: site.py FOLDER BASE WARC...

The files that HTML and CSS links reach from the home page are found by Python's own parser. Each of them has to be captured; each
response with status 200 has to be a file of the folder, byte for byte."""

import html.parser
import json
import os
import re
import sys
import urllib.parse

import warc

FOLDER, BASE = os.path.realpath(sys.argv[1]), sys.argv[2]
CSS_LINK = re.compile(r"""url\(\s*(?:"([^"]*)"|'([^']*)'|([^)"'\s]*))\s*\)|@import\s+(?:"([^"]*)"|'([^']*)')""", re.I)
CSS_COMMENT = re.compile(r"/\*.*?\*/", re.S)
# The attributes that are links (HTML standard, attributes of the type "URL").
LINKS = {
    "a": ["href"], "area": ["href"], "audio": ["src"], "body": ["background"], "embed": ["src"], "frame": ["src"],
    "iframe": ["src"], "img": ["src"], "input": ["src"], "link": ["href"], "object": ["data"], "script": ["src"],
    "source": ["src"], "track": ["src"], "video": ["src", "poster"],
}  # fmt: skip


class Page(html.parser.HTMLParser):
    def __init__(self, base):
        super().__init__()
        self.base, self.links, self.in_style = base, [], False

    def add(self, link):
        try:
            self.links.append(urllib.parse.urljoin(self.base, link.strip()))
        except ValueError:
            pass

    def handle_starttag(self, tag, attributes):
        values = {name: value or "" for name, value in attributes}
        if tag == "base" and "href" in values:
            self.base = urllib.parse.urljoin(self.base, values["href"])
        for name in LINKS.get(tag, []):
            if values.get(name):
                self.add(values[name])
        if tag in ("img", "source"):
            for candidate in values.get("srcset", "").split(","):
                if candidate.strip():
                    self.add(candidate.split()[0])
        if tag == "meta" and values.get("http-equiv", "").lower() == "refresh":
            _, _, link = values.get("content", "").partition("=")
            if link:
                self.add(link.strip("'\" "))
        for link in css_links(values.get("style", "")):
            self.add(link)
        self.in_style = tag == "style"

    def handle_endtag(self, tag):
        self.in_style = False

    def handle_data(self, data):
        if self.in_style:
            for link in css_links(data):
                self.add(link)


def css_links(text):
    for groups in CSS_LINK.findall(CSS_COMMENT.sub("", text)):
        link = "".join(groups).strip()
        if link and not link.startswith("data:"):
            yield link


def file_of(url):
    """The file that a server of FOLDER has under a URL, or None."""
    url = urllib.parse.urldefrag(url).url
    if not url.startswith(BASE):
        return None
    path = urllib.parse.unquote(urllib.parse.urlsplit(url).path)
    file = os.path.normpath(FOLDER + path)
    if os.path.isdir(file) and path.endswith("/"):
        file = os.path.join(file, "index.html")
    return file if os.path.isfile(file) else None


def links_of(file, url):
    with open(file, encoding="utf-8", errors="replace") as opened:
        if file.endswith(".html"):
            page = Page(url)
            page.feed(opened.read())
            return page.links
        if file.endswith(".css"):
            return [urllib.parse.urljoin(url, link) for link in css_links(opened.read())]
    return []


def reached():
    files, pending = {}, [BASE]
    while pending:
        url = urllib.parse.urldefrag(pending.pop()).url
        file = file_of(url)
        if file and file not in files:
            files[file] = url
            pending += links_of(file, url)
    return files


captured, others = {}, []
for path in sys.argv[3:]:
    for record in warc.records(path):
        if record.kind != "response":
            continue
        payload = record.payload()
        warc.expect(record.payload_digest == warc.sha1(payload), f"{record.uri}: another payload than its digest says")
        warc.expect(record.block_digest == warc.sha1(record.block), f"{record.uri}: another block than its digest says")
        if record.status() != 200:
            others.append(record.uri)
            continue
        file = file_of(record.uri)
        warc.expect(file, f"{record.uri}: 200 for what is no file")
        with open(file, "rb") as opened:
            warc.expect(payload == opened.read(), f"{record.uri}: other bytes than {file}")
        captured[file] = record.uri

expected = reached()
missing = sorted(url for file, url in expected.items() if file not in captured)
warc.expect(not missing, f"{len(missing)} of {len(expected)} files are not captured: {missing[:20]}")
json.dump({"reached": len(expected), "captured": len(captured), "others": others}, sys.stdout)
