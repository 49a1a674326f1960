// Tests of the service worker, run by node: `node --test worker_test.js`. The worker runs in a context of its own, in which
// the only way out is a `fetch` that is written down.
"use strict";

const assert = require("node:assert");
const { readFileSync } = require("node:fs");
const { join } = require("node:path");
const { test } = require("node:test");
const vm = require("node:vm");

const HOST = "http://127.0.0.1:8091";
const PAGE = `${HOST}/all/20200101000000mp_/http://a.dk/x/y?z`;

/** A worker, what it asked for, and a way to send it requests. `answers` is called with each path that it asks for. */
function begin({ clients = { c1: PAGE }, answers = () => new Response("archived") } = {}) {
  const asked = [];
  const listeners = {};
  const self = {
    location: new URL(`${HOST}/static/worker.js`),
    addEventListener: (name, listener) => (listeners[name] = listener),
    skipWaiting: () => {},
    clients: {
      get: async (id) => (clients[id] ? { id, url: clients[id] } : undefined),
      matchAll: async () => Object.entries(clients).map(([id, url]) => ({ id, url })),
    },
  };
  const fetch = async (path, init) => {
    asked.push({ path, ...init });
    return answers(path, init);
  };
  const context = { self, fetch, URL, Headers, Response, TextDecoder, Uint8Array, Map, Set };
  vm.runInNewContext(readFileSync(join(__dirname, "worker.js"), "utf8"), context);
  const send = async (url, options = {}) => {
    const request = {
      url,
      method: "GET",
      mode: "no-cors",
      destination: "image",
      redirect: "follow",
      cache: "default",
      referrer: "",
      arrayBuffer: async () => new TextEncoder().encode(options.body ?? "").buffer,
      ...options,
      headers: new Headers(options.headers),
    };
    let answer;
    listeners.fetch({ request, clientId: options.client ?? "c1", respondWith: (own) => (answer = own) });
    return answer;
  };
  return { asked, send };
}

const navigation = { mode: "navigate", destination: "iframe", client: "" };
const redirect = (location, status = "302") =>
  new Response("", { headers: { "x-redirect-status": status, "x-orig-location": location } });

/** Checks that every request of the worker goes to a path of its own host. */
function assertInside(asked) {
  for (const { path, mode, redirect: followed } of asked) {
    assert.match(path, /^\/[\w.-]+\/\d*[a-z]{2}_\/https?:\/\//);
    assert.equal(mode, "same-origin");
    assert.equal(followed, "manual");
  }
}

test("references of a page become captures of its time", async () => {
  for (const [url, expected] of [
    ["http://b.dk/i.png?a=1#f", "/all/20200101000000id_/http://b.dk/i.png?a=1"],
    ["https://b.dk:8443/", "/all/20200101000000id_/https://b.dk:8443/"],
    [`${HOST}/all/20200101000000mp_/http://a.dk/x/i.png?b`, "/all/20200101000000id_/http://a.dk/x/i.png?b"],
    [`${HOST}/all/2019mp_/http://a.dk/i`, "/all/2019id_/http://a.dk/i"],
    [`${HOST}/all/mp_/http:/a.dk/i`, "/all/id_/http://a.dk/i"],
    [`${HOST}/static/logo.png`, "/all/20200101000000id_/http://a.dk/static/logo.png"],
    [`${HOST}/news/2020/01/i.png?q`, "/all/20200101000000id_/http://a.dk/news/2020/01/i.png?q"],
    ["http://localhost:8090/admin", "/all/20200101000000id_/http://localhost:8090/admin"],
  ]) {
    const { asked, send } = begin();
    assert.equal(await (await send(url)).text(), "archived");
    assert.deepEqual(asked.map((own) => own.path), [expected], url);
    assert.equal(asked[0].headers.get("x-replay-worker"), "image");
    assertInside(asked);
  }
});

test("two pages of different times keep theirs", async () => {
  const clients = { c1: PAGE, c2: `${HOST}/other/2010mp_/http://c.dk/` };
  const { asked, send } = begin({ clients });
  await send("http://b.dk/", { client: "c1" });
  await send("http://b.dk/", { client: "c2" });
  await send("/x".replace("/", `${HOST}/`), { client: "c2" });
  assert.deepEqual(asked.map((own) => own.path), [
    "/all/20200101000000id_/http://b.dk/",
    "/other/2010id_/http://b.dk/",
    "/other/2010id_/http://c.dk/x",
  ]);
});

test("a request that cannot be placed is answered in words", async () => {
  const clients = { c1: PAGE, c2: `${HOST}/all/2010mp_/http://c.dk/`, blank: "about:blank" };
  const { asked, send } = begin({ clients });
  for (const client of ["blank", "nobody", ""]) {
    assert.equal((await send("http://b.dk/", { client })).status, 404);
  }
  assert.equal((await send("ftp-nonsense", {})).status, 404);
  assert.deepEqual(asked, []);
});

test("a blank frame has the time of the only page", async () => {
  const clients = { c1: PAGE, blank: "about:blank" };
  const { asked, send } = begin({ clients });
  await send("http://b.dk/", { client: "blank" });
  assert.deepEqual(asked.map((own) => own.path), ["/all/20200101000000id_/http://b.dk/"]);
});

test("navigations of frames get pages, others are left to the server", async () => {
  const { asked, send } = begin();
  for (const destination of ["iframe", "frame", "object", "embed"]) {
    await send(PAGE, { ...navigation, destination });
    assert.equal(asked.pop().headers.get("x-replay-worker"), destination);
  }
  for (const [url, destination] of [
    [PAGE, "document"],
    [`${HOST}/all/2020id_/http://a.dk/`, "iframe"],
    [`${HOST}/all/2020/http://a.dk/`, "iframe"],
    [`${HOST}/all/cdx?url=a`, "document"],
  ]) {
    assert.equal(await send(url, { ...navigation, destination }), undefined, url);
  }
  assert.deepEqual(asked, []);
});

test("a path of an archived site leads back to its page", async () => {
  const { asked, send } = begin();
  const back = await send(`${HOST}/next?a`, { ...navigation, referrer: PAGE });
  assert.equal(back.status, 302);
  assert.equal(back.headers.get("location"), `${HOST}/all/20200101000000mp_/http://a.dk/next?a`);
  assert.equal((await send(`${HOST}/next`, navigation)).status, 404);
  assert.deepEqual(asked, []);
});

test("redirects are followed within the archive", async () => {
  const answers = (path) => {
    if (path.endsWith("http://a.dk/1")) {
      return redirect("//b.dk/2");
    }
    return path.endsWith("/2") ? redirect("http://c.dk/bl\u00c3\u00a6", "301") : new Response("end");
  };
  const { asked, send } = begin({ answers });
  assert.equal(await (await send("http://a.dk/1")).text(), "end");
  assert.equal(asked.at(-1).path, "/all/20200101000000id_/http://c.dk/bl%C3%A6");
  assertInside(asked);
  const led = await send(`${HOST}/all/2020mp_/http://a.dk/1`, navigation);
  assert.equal(led.headers.get("location"), `${HOST}/all/2020mp_/http://b.dk/2`);
  assert.equal((await send("http://a.dk/1", { redirect: "error" })).type, "error");
});

test("redirects that lead nowhere end", async () => {
  const endless = begin({ answers: () => redirect("http://a.dk/again") });
  assert.equal((await endless.send("http://a.dk/")).type, "error");
  assert.equal(endless.asked.length, 21);
  const script = begin({ answers: () => redirect("javascript:alert(1)") });
  assert.equal((await script.send("http://a.dk/")).type, "error");
  assert.equal((await script.send(PAGE, navigation)).status, 404);
});

test("other methods keep their body, and lose it as browsers have it", async () => {
  const answers = (path) => (path.endsWith("/form") ? redirect("/done", "303") : new Response("ok"));
  const { asked, send } = begin({ answers });
  const headers = { "content-type": "text/plain", cookie: "a=b", range: "bytes=0-1", "x-own": "x" };
  await send("http://a.dk/form", { method: "POST", body: "q=1", headers, destination: "" });
  const [first, second] = asked;
  assert.equal(first.method, "POST");
  assert.equal(new TextDecoder().decode(first.body), "q=1");
  assert.deepEqual([...first.headers.keys()].sort(), ["content-type", "range", "x-replay-worker"]);
  assert.equal(first.headers.get("x-replay-worker"), "empty");
  assert.equal(second.method, "GET");
  assert.equal(second.body, undefined);
  await send("http://a.dk/put", { method: "PUT", body: "x".repeat(3 << 20) });
  assert.equal(asked.at(-1).body.byteLength, 1 << 20);
});

test("a server that is down is no way to the live web", async () => {
  const answers = () => {
    throw new TypeError("down");
  };
  const { asked, send } = begin({ answers });
  assert.equal((await send("http://b.dk/")).status, 503);
  assert.equal((await send(PAGE, navigation)).status, 503);
  assertInside(asked);
});

test("the worker is short, and asks in one place", () => {
  const text = readFileSync(join(__dirname, "worker.js"), "utf8");
  assert.ok(text.split("\n").length <= 400);
  assert.equal(text.match(/\bfetch\(/g).length, 1);
  assert.doesNotMatch(text, /importScripts|XMLHttpRequest|WebSocket|eval\(/);
});
