"""Lists the titles of the HTML pages of an archive: a line `URL TAB TITLE` for each.

Takes one argument: `host`, to list only pages whose URL has this host.
"""

# Everything is imported here, at the top: imports are done when the component is built. One inside a function would look
# for files when the job runs, where there are none.
from html.parser import HTMLParser
from urllib.parse import urlsplit

from componentize_py_types import Err
from wit_world import exports
from wit_world.imports import host

# A title stands near the beginning: no more of a page is read.
MOST = 256 * 1024

# The host that is wanted; nothing: each. What is kept between two calls is kept in the module: `self` is another object in
# each call. It is kept for one file, since each file has an instance of the whole program for itself.
wanted = None


class Title(HTMLParser):
    """Collects the text of the first `title`."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.inside = self.done = False
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.inside = tag == "title" and not self.done

    def handle_endtag(self, tag):
        if self.inside:
            self.inside, self.done = False, True

    def handle_data(self, data):
        if self.inside:
            self.text += data


def title_of(page: bytes) -> str:
    """The title of a page, with single blanks; empty if it has none."""
    parser = Title()
    parser.feed(page.decode("utf-8", "replace"))
    return " ".join(parser.text.split())


def media_type(fields) -> str:
    for name, value in fields:
        if name.lower() == "content-type":
            return value.split(";")[0].strip().lower()
    return ""


class Records(exports.Records):
    def describe(self) -> str:
        return "Lists the titles of HTML pages. Argument: host, to list only pages of this host."

    def begin(self, file, arguments) -> None:
        global wanted
        for name, value in arguments:
            if name != "host":
                # The way to say that something is wrong. Any other exception would end the job for this file.
                raise Err(f"there is no argument {name!r}; the only one is `host`")
            wanted = value

    def record(self, record) -> None:
        if record.kind != "response" or record.url is None:
            return
        try:
            if wanted is not None and urlsplit(record.url).hostname != wanted:
                return
            message = host.http()
            if message is None or message.status != 200 or media_type(message.fields) != "text/html":
                return
            # `payload` undoes chunks and compression.
            title = title_of(host.payload(MOST))
        except Err:
            raise
        except Exception as error:
            # Without this an odd page would end the job for the whole file, and not for this page.
            raise Err(f"{record.url}: {error}")
        if title:
            host.write(f"{record.url}\t{title}\n".encode())

    def end(self) -> None:
        pass
