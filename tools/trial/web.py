#!/usr/bin/env python3
"""A web on loopback to try crawlers on: many domains at 50 addresses, some of them sick.

    tools/trial/web.py FOLDER [DOMAINS [SICK]]

Needs nginx and dnsmasq. Writes into FOLDER, then prints `ready` and serves until it is ended:

    seeds       a home page for each domain; one in a hundred of a sick web has a second seed, which is dead
    living      every URI that answers 200 and whole: what a crawl should have
    dns         where the names are answered, as ADDRESS:PORT

A domain has a home page, 20 pages, a style sheet and a picture. In a sick web (SICK is the word `sick`) of each hundred
domains five refuse connections, one has a dead second seed, and six have one sick page: in two it stalls, in two it is
answered by 429 (come back in 30 s), and in two the connection is reset within it.
"""

import asyncio
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys

ADDRESSES = 50
PAGES = 20
NAMES = "127.0.0.1:5353"
# Ports at each address: of nginx, of the domains with a sick page, and one at which nothing listens.
SOUND = 8080
SICK = 8081
DEAD = 8082
SICK_PAGE = "/7.html"
PARTS = ["style.css", "logo.png", *(f"{page}.html" for page in range(1, PAGES + 1))]


def kind_of(number, is_sick):
    """What is wrong with a domain: spread evenly, by its number."""
    place = number % 100
    if not is_sick:
        return "sound"
    if place % 20 == 7:
        return "refuses"
    return {3: "stalls", 53: "stalls", 13: "busy", 63: "busy", 23: "resets", 73: "resets", 33: "dead-seed"}.get(place, "sound")


def page(number):
    """The text of a page: some 4 kB, as pages are."""
    links = "".join(f'<li><a href="/{other}.html">Page {other} of this site</a>' for other in range(1, PAGES + 1))
    text = f"Page {number} says what it has to say, and nothing else. " * 50
    return (
        f'<!DOCTYPE html><title>Page {number}</title><link rel="stylesheet" href="/style.css">'
        f'<h1><img src="/logo.png" alt=""> Page {number}</h1><ul>{links}</ul><p>{text}'
    )


async def answer(kinds, reader, writer):
    """Answers for the domains that are sick, by the name in the request."""
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            path = head.split(" ")[1]
            fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
            host = {name.lower(): value for name, value in fields.items()}.get("host", "").split(":")[0]
            kind = kinds[host]
            if kind == "busy" and path == SICK_PAGE:
                writer.write(b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 30\r\nContent-Length: 0\r\n\r\n")
            elif path == "/robots.txt" or path == "/favicon.ico":
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            else:
                media, body = {
                    "/style.css": ("text/css", b"body { color: #222 }"),
                    "/logo.png": ("image/png", b"\x89PNG\r\n\x1a\n" + bytes(2000)),
                }.get(path, ("text/html", page(path.strip("/").removesuffix(".html") or "home").encode()))
                writer.write(f"HTTP/1.1 200 OK\r\nContent-Type: {media}\r\nContent-Length: {len(body)}\r\n\r\n".encode())
                if path == SICK_PAGE:
                    writer.write(body[: len(body) // 2])
                    await writer.drain()
                    if kind == "stalls":
                        await asyncio.sleep(3600)
                    # The peer is told by RST, not by FIN.
                    linger = struct.pack("ii", 1, 0)
                    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                    return
                writer.write(body)
            await writer.drain()
    except (asyncio.IncompleteReadError, asyncio.CancelledError, ConnectionError):
        pass
    finally:
        writer.close()


def make(folder, domains, is_sick):
    """Writes the site and the lists. Returns what is wrong with each sick domain, and the lines for the name server."""
    site = folder / "site"
    site.mkdir(parents=True, exist_ok=True)
    (site / "index.html").write_text(page("home"))
    for number in range(1, PAGES + 1):
        (site / f"{number}.html").write_text(page(number))
    (site / "style.css").write_text("body { color: #222 }")
    (site / "logo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(2000))
    # nginx reads it as another user than root.
    for path in (folder, site, *site.iterdir()):
        path.chmod(0o755)
    kinds, seeds, living, names = {}, [], [], []
    for number in range(domains):
        kind = kind_of(number, is_sick)
        name = f"www.domain{number:05}.example"
        kinds[name] = kind
        port = {"sound": SOUND, "dead-seed": SOUND, "refuses": DEAD}.get(kind, SICK)
        base = f"http://{name}:{port}/"
        seeds.append(base)
        # The sick ones of each hundred lie at other addresses.
        address = f"127.1.0.{(number + number // 100) % ADDRESSES + 1}"
        names.append(f"{address} {name}")
        if kind == "dead-seed":
            seeds.append(f"http://old.domain{number:05}.example:{DEAD}/")
            names.append(f"{address} old.domain{number:05}.example")
        if kind == "refuses":
            continue
        parts = [part for part in PARTS if port == SOUND or "/" + part != SICK_PAGE]
        living += [base, *(base + part for part in parts)]
    for name, lines in (("seeds", seeds), ("living", living), ("names", names)):
        (folder / name).write_text("\n".join(lines) + "\n")
    (folder / "dns").write_text(NAMES + "\n")
    return kinds


def serve(folder):
    """Starts nginx and dnsmasq."""
    listen = "\n".join(f"listen 127.1.0.{address}:{SOUND} backlog=4096;" for address in range(1, ADDRESSES + 1))
    config = folder / "nginx.conf"
    config.write_text(
        f"daemon off; pid {folder}/nginx.pid; error_log {folder}/nginx.err crit; worker_processes 1;\n"
        f"events {{ worker_connections 8192; }}\n"
        f"http {{ access_log off; types {{ text/html html; text/css css; image/png png; }}\n"
        f"keepalive_timeout 20; server {{ {listen} root {folder}/site; }} }}\n"
    )
    environment = dict(os.environ, PATH=os.environ["PATH"] + ":/usr/sbin:/sbin")
    names, _, port = NAMES.partition(":")
    # Neither says a word that anybody needs.
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": environment}
    return [
        subprocess.Popen(["nginx", "-p", str(folder), "-c", str(config)], **quiet),
        subprocess.Popen(
            ["dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--bind-interfaces",
             f"--listen-address={names}", f"--port={port}", f"--addn-hosts={folder}/names", "--local-ttl=3600",
             "--cache-size=10000", "--dns-forward-max=1000", "--pid-file="],
            **quiet,
        ),
    ]  # fmt: skip


async def run(folder, domains, is_sick):
    kinds = make(folder, domains, is_sick)
    servers = serve(folder)
    addresses = [f"127.1.0.{address}" for address in range(1, ADDRESSES + 1)]
    sick = await asyncio.start_server(lambda reader, writer: answer(kinds, reader, writer), addresses, SICK, backlog=1024)
    ended = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, ended.set)
    print("ready", flush=True)
    await ended.wait()
    sick.close()
    for server in servers:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    count = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    asyncio.run(run(pathlib.Path(sys.argv[1]).resolve(), count, "sick" in sys.argv[3:]))
