#!/usr/bin/env python3
"""The same four crawls by Holdfast and by a real Heritrix 3, and what each has that the other lacks.

    tools/trial/beside_heritrix.py HOLDFAST HERITRIX FOLDER [NAME...]

HOLDFAST is the executable, HERITRIX an unpacked distribution (Java 17), FOLDER is made. NAMES of crawls: small, large, sound,
sick; all of them without any. Heritrix runs with its own default profile, in which seeds, pauses, threads and the contact are
set; it is driven by its REST interface. Pages count that were answered with 200, by the crawl logs of both, which are of one
form. Needs nginx, dnsmasq, curl and unzip.
"""

import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import time
import zipfile

HERE = pathlib.Path(__file__).resolve().parent
PORT = 8090
SITES = {"small": "/usr/share/doc/postgresql-doc-15/html", "large": "/usr/share/doc/python3.11/html"}
PROFILE = "org/archive/crawler/restlet/profile-crawler-beans.cxml"
# After this a crawl is ended.
LONGEST = {"small": 120, "large": 180, "sound": 300, "sick": 420}


class Crawl:
    """A crawl that is over: its seconds, those of the processor, megabytes, bytes kept, and its log."""

    def __init__(self, log, began, seconds, cpu, memory, kept):
        self.seconds, self.cpu, self.memory, self.kept = seconds, cpu, memory, kept
        lines = [line.split() for line in open(log, errors="replace") if not line.startswith("#")]
        self.requests = sum(1 for line in lines if int(line[1]) > 0 and not line[3].startswith("dns:"))
        self.pages, last = set(), began
        for line in lines:
            if line[1] == "200":
                self.pages.add(line[3])
                last = max(last, parse_time(line[0]))
        self.last = last - began

    def text(self):
        end = "no end" if self.seconds is None else f"end {self.seconds:6.1f} s"
        return (
            f"{len(self.pages):6} pages of {self.requests:6} requests, the last after {self.last:6.1f} s, {end}, "
            f"{self.cpu:6.1f} s of CPU, {self.memory:5} MB, {self.kept / 1e6:6.1f} MB kept"
        )


def parse_time(text):
    """Seconds since 1970 of a time as crawl logs have it."""
    import datetime

    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def holdfast(executable, folder, seeds, delay, dns, longest):
    """Runs our crawl; eight connections where there is no pause."""
    words = [executable, "crawl", "--seeds", str(seeds), "--delay", str(delay), "--no-store", "--keep", str(folder)]
    words += ["--contact", "mailto:web@library.example", "--allow-network", "127.0.0.0/8"]
    words += ["--dns", dns] if dns else ["--connections", "8"]
    began = time.time()
    seconds = None
    folder.mkdir(parents=True)
    with open(folder / "told", "wb") as told:
        process = subprocess.Popen(words, stdout=told, stderr=told)
        ended = 0
        while not ended:
            time.sleep(0.02)
            ended, _, used = os.wait4(process.pid, os.WNOHANG)
            if time.time() - began > longest and seconds is None:
                seconds = 0
                process.send_signal(signal.SIGINT)
        seconds = None if seconds == 0 else time.time() - began
    cpu = used.ru_utime + used.ru_stime
    job = next(path for path in folder.iterdir() if path.is_dir())
    kept = sum(path.stat().st_size for path in job.glob("warcs/*.warc.gz"))
    return Crawl(job / "logs/crawl.log", began, seconds, cpu, used.ru_maxrss // 1024, kept)


class Heritrix:
    """A running engine."""

    def __init__(self, home, folder, dns):
        self.home, self.folder = home, folder
        (folder / "jobs").mkdir(parents=True)
        options = "-Xmx1g" + (f" -Ddns.server={dns}" if dns else "")
        words = ["sh", str(home / "bin/heritrix"), "-a", "admin:admin", "-b", "127.0.0.1", "-p", "8443", "-j", str(folder / "jobs")]
        told = open(folder / "told", "wb")
        environment = dict(os.environ, FOREGROUND="1", JAVA_OPTS=options)
        self.process = subprocess.Popen(words, env=environment, stdout=told, stderr=told, start_new_session=True)
        for _ in range(120):
            time.sleep(1)
            if "engine" in self.ask("engine"):
                return
        sys.exit(f"Heritrix does not start; see {folder / 'told'}")

    def ask(self, path, **form):
        words = ["curl", "-skL", "--digest", "-u", "admin:admin", "-H", "Accept: application/xml"]
        for name, value in form.items():
            words += ["-d", f"{name}={value}"]
        words.append(f"https://127.0.0.1:8443/{path}")
        return subprocess.run(words, capture_output=True, timeout=60).stdout.decode(errors="replace")

    def java(self):
        """The process of the virtual machine: it may be the shell's child."""
        for entry in pathlib.Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    if os.getpgid(int(entry.name)) == self.process.pid and (entry / "comm").read_text().strip() == "java":
                        return entry
                except OSError:
                    pass
        sys.exit("Heritrix has ended")

    def cpu(self):
        ticks = (self.java() / "stat").read_text().rsplit(")", 1)[1].split()[11:13]
        return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")

    def profile(self):
        for jar in self.home.glob("lib/heritrix-engine-*.jar"):
            with zipfile.ZipFile(jar) as files:
                if PROFILE in files.namelist():
                    return files.read(PROFILE).decode()
        sys.exit(f"there is no default profile in {self.home}")

    def crawl(self, name, seeds, delay, longest):
        job = self.folder / "jobs" / name
        job.mkdir()
        settings = f"disposition.delayFactor=0\ndisposition.minDelayMs={delay}\ndisposition.maxDelayMs={delay}\n"
        settings += "crawlController.maxToeThreads=50\ncrawlController.pauseAtStart=false\n"
        text = re.sub("metadata.operatorContactUrl=.*", "metadata.operatorContactUrl=http://library.example/", self.profile())
        text = text.replace("##..more?..##", settings, 1).replace("http://example.example/example", seeds.read_text(), 1)
        (job / "crawler-beans.cxml").write_text(text)
        self.ask("engine", action="rescan")
        self.ask(f"engine/job/{name}", action="build")
        while "launch" not in self.ask(f"engine/job/{name}"):
            time.sleep(0.5)
        cpu = self.cpu()
        began = time.time()
        self.ask(f"engine/job/{name}", action="launch")
        seconds = None
        while time.time() - began < longest:
            time.sleep(0.2)
            if "<crawlControllerState>FINISHED" in self.ask(f"engine/job/{name}"):
                seconds = time.time() - began
                break
        cpu = self.cpu() - cpu
        memory = int(re.search(r"VmHWM:\s+(\d+)", (self.java() / "status").read_text())[1]) // 1024
        if seconds is None:
            self.ask(f"engine/job/{name}", action="terminate")
            time.sleep(5)
        kept = sum(path.stat().st_size for path in job.glob("**/*.warc.gz"))
        log = next(job.glob("**/crawl.log"))
        crawl = Crawl(log, began, seconds, cpu, memory, kept)
        self.ask(f"engine/job/{name}", action="teardown")
        return crawl

    def stop(self):
        os.killpg(self.process.pid, signal.SIGTERM)
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)


def serve_site(folder, root):
    """nginx with one site; returns its process and its seed."""
    folder.mkdir(parents=True)
    folder.chmod(0o755)
    config = folder / "nginx.conf"
    config.write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/err crit; worker_processes 1; events {{ worker_connections 512; }}\n"
        f"http {{ include /etc/nginx/mime.types; access_log off; keepalive_requests 1000000;\n"
        f"server {{ listen 127.0.0.1:{PORT}; root {root}; }} }}\n"
    )
    environment = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin:/sbin")
    server = subprocess.Popen(["nginx", "-p", str(folder), "-c", str(config)], env=environment, stderr=subprocess.DEVNULL)
    (folder / "seeds").write_text(f"http://127.0.0.1:{PORT}/index.html\n")
    return server, folder / "seeds", None


def serve_web(folder, words):
    """A web of a thousand domains; returns its process, its seeds, and where names are answered."""
    server = subprocess.Popen([sys.executable, str(HERE / "web.py"), str(folder), "1000", *words], stdout=subprocess.PIPE)
    server.stdout.readline()
    return server, folder / "seeds", (folder / "dns").read_text().strip()


def compare(name, executable, home, folder):
    """One crawl by both. Prints what each has done, and lacks."""
    if name in SITES:
        server, seeds, dns = serve_site(folder / "web", SITES[name])
    else:
        server, seeds, dns = serve_web(folder / "web", [name] if name == "sick" else [])
    delay = 100 if dns else 0
    try:
        ours = holdfast(executable, folder / "holdfast", seeds, delay, dns, LONGEST[name])
        print(f"{name:6} Holdfast {ours.text()}", flush=True)
        engine = Heritrix(home, folder / "heritrix", dns)
        try:
            # The first crawl warms the virtual machine.
            if name in SITES:
                engine.crawl("warm", seeds, delay, LONGEST[name])
            theirs = engine.crawl(name, seeds, delay, LONGEST[name])
        finally:
            engine.stop()
    finally:
        server.terminate()
        server.wait()
    print(f"{name:6} Heritrix {theirs.text()}")
    rate = (len(ours.pages) / ours.last) / (len(theirs.pages) / theirs.last)
    print(f"{name:6} pages/s {rate:.1f} x, CPU 1/{theirs.cpu / ours.cpu:.1f}, memory 1/{theirs.memory / ours.memory:.1f}")
    for who, lacks in (("Holdfast", theirs.pages - ours.pages), ("Heritrix", ours.pages - theirs.pages)):
        print(f"{name:6} {who} lacks {len(lacks)} that the other has: {' '.join(sorted(lacks)[:5])}")
    if (folder / "web/living").exists():
        living = set((folder / "web/living").read_text().split())
        for who, crawl in (("Holdfast", ours), ("Heritrix", theirs)):
            missing = living - crawl.pages
            print(f"{name:6} {who} has {len(living & crawl.pages)} of {len(living)} living: lacks {' '.join(sorted(missing)[:5])}")


if __name__ == "__main__":
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    executable, home, folder = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3]).resolve()
    for name in sys.argv[4:] or [*SITES, "sound", "sick"]:
        if (folder / name).exists():
            shutil.rmtree(folder / name)
        compare(name, executable, home, folder / name)
