#!/usr/bin/env python3
"""A crawl of a web with sick hosts that is broken off again and again, resumed each time, and then looked at.

    tools/trial/interrupted.py HOLDFAST FOLDER kills|cuts COUNT

Kills are SIGKILL; cuts are power cuts of an ext4 image on which the job lies, every second one without its journal written.
FOLDER is made. Needs nginx and dnsmasq, and root for cuts. Says what was lost, and what is in the crawl log or the archive files
twice.
"""

import collections
import fcntl
import gzip
import os
import pathlib
import random
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
# EXT4_IOC_SHUTDOWN, with the journal written and without (linux/ext4.h).
SHUTDOWN = 0x8004587D
FLUSHED, UNFLUSHED = 1, 2
ORDER = 'retry = { first_delay = "1 s", delay = "5 s" }\nlimits.stall = "5 s"\n'


class Image:
    """A file system of its own, whose power can be cut."""

    def __init__(self, folder):
        self.file, self.mounted = folder / "image", folder / "mounted"
        self.mounted.mkdir()
        subprocess.run(["truncate", "-s", "3G", self.file], check=True)
        subprocess.run(["mkfs.ext4", "-q", self.file], check=True)
        self.mount()

    def mount(self):
        subprocess.run(["mount", "-o", "loop", self.file, self.mounted], check=True)

    def cut(self, how):
        handle = os.open(self.mounted, os.O_RDONLY)
        fcntl.ioctl(handle, SHUTDOWN, how.to_bytes(4, sys.byteorder))
        os.close(handle)

    def unmount(self):
        subprocess.run(["umount", self.mounted], check=True)


def responses(files):
    """The URIs of the response records, each as often as it is there."""
    found = collections.Counter()
    for path in files:
        kind = None
        for line in gzip.open(path, "rb"):
            if line.startswith(b"WARC-Type: "):
                kind = line.split()[1]
            elif line.startswith(b"WARC-Target-URI: ") and kind == b"response":
                found[line.split()[1].decode().strip("<>")] += 1
    return found


def main(holdfast, folder, how, count):
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    web = subprocess.Popen([sys.executable, HERE / "web.py", folder / "web", "1000", "sick"], stdout=subprocess.PIPE)
    web.stdout.readline()
    image = Image(folder) if how == "cuts" else None
    base = (image.mounted if image else folder) / "jobs"
    base.mkdir()
    (folder / "order.toml").write_text(ORDER)
    begin = [holdfast, "crawl", "--seeds", folder / "web/seeds", "--order", folder / "order.toml", "--delay", "100"]
    begin += ["--contact", "mailto:web@library.example", "--allow-network", "127.0.0.0/8"]
    begin += ["--dns", (folder / "web/dns").read_text().strip()]
    where = ["--no-store", "--keep", base]
    told = open(folder / "told", "wb")
    words = begin
    for number in range(count + 1):
        process = subprocess.Popen([*words, *where], stdout=told, stderr=told)
        if number < count:
            time.sleep(random.uniform(1.5, 5))
            if image:
                image.cut(FLUSHED if number % 2 else UNFLUSHED)
            process.kill()
        process.wait()
        if image and number < count:
            image.unmount()
            image.mount()
        # A cut in the first second leaves no job.
        jobs = [path for path in base.iterdir() if (path / "job.toml").exists()]
        words = [holdfast, "crawl", "--resume", jobs[0]] if jobs else begin
        where = ["--no-store"] if jobs else where
    job = jobs[0]
    living = set((folder / "web/living").read_text().split())
    lines = [line.split() for line in open(job / "logs/crawl.log") if not line.startswith("#")]
    logged = collections.Counter(line[3] for line in lines if line[1] == "200")
    recorded = responses(job.glob("warcs/*.warc.gz"))
    print(f"{count} {how}: of {len(living)} living pages {len(living - logged.keys())} are not in the log, "
          f"{len(living - recorded.keys())} in no record; twice in the log {sum(n > 1 for n in logged.values())}, "
          f"in records {sum(n > 1 for uri, n in recorded.items() if uri in living)}; exit {process.returncode}")  # fmt: skip
    twice = [uri for uri, n in logged.items() if n > 1]
    print(f"twice: {' '.join(twice[:5])}; the job is in {job}")
    web.terminate()
    web.wait()


if __name__ == "__main__":
    if len(sys.argv) != 5 or sys.argv[3] not in ("kills", "cuts"):
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3], int(sys.argv[4]))
