// The service worker of the replay host: it answers every request of an archived page with a capture.
//
// Owns the way from a request to the address of a capture: the collection and the time are those of the page that asks, which
// its client tells by its URL. Bytes come as the server gives them. Not promised: dates or locations that scripts would have
// seen then, and streams of requests (a body is sent in one piece).
//
// It asks its own host and nothing else: there is one `fetch` in it, its URL is a path, and the policy of this script allows no
// other host. A request that cannot be placed is answered here, in words.
"use strict";

/** The field that says for what a request of ours stands. */
const FIELD = "x-replay-worker";

/** The destinations of pages within pages. All other navigations are the server's to answer. */
const FRAMES = new Set(["iframe", "frame", "object", "embed"]);

/** The modifiers of pages. */
const PAGES = new Set(["mp_", "if_", "fr_", "bn_"]);

/** The modifier of bytes as they were captured. */
const RAW = "id_";

/** The fields of a request that the server is told. */
const TOLD = ["accept", "accept-language", "content-type", "range"];

/** The most redirects that are followed for one request, as browsers have it. */
const MOST_REDIRECTS = 20;

/** The part of a body that the server makes a key of, in bytes. */
const LONGEST_BODY = 1 << 20;

/** The most clients whose pages are remembered. */
const MOST_CLIENTS = 1000;

/** `/<collection>/<time><modifier>/<url>`; a URL without a scheme might be a path of an archived site. */
const ADDRESS =
  /^\/([A-Za-z0-9_-][A-Za-z0-9_.-]{0,63})\/(?:(\d{1,17})([a-z]{2}_)?|([a-z]{2}_))\/((?:https?|ftp):\/.*)$/i;

/** Reads the address of a capture; null for all other URLs. */
function readAddress(text) {
  const url = parse(text);
  if (!url || url.origin !== self.location.origin) {
    return null;
  }
  const found = ADDRESS.exec(url.pathname);
  // A proxy, or the browser, may have taken one of two slashes away.
  const target = found && parse((found[5] + url.search).replace(/^([a-z]+):\/+/i, "$1://"));
  if (!target) {
    return null;
  }
  return {
    collection: found[1],
    time: found[2] ?? "",
    modifier: found[3] ?? found[4] ?? "",
    url: target,
  };
}

/** The path of the capture of a URL. Without a time it is the latest one. */
function pathOf(place, modifier) {
  const url = new URL(place.url);
  url.hash = "";
  return `/${place.collection}/${place.time}${modifier}/${url.href}`;
}

/** A URL, or null. */
function parse(text, base) {
  try {
    return new URL(text, base);
  } catch {
    return null;
  }
}

/** The pages of clients, by their ids. */
const pages = new Map();

/** The page of a client: its collection, time and URL. */
async function pageOf(id) {
  const known = pages.get(id);
  if (known) {
    return known;
  }
  const client = id ? await self.clients.get(id) : null;
  const page = client && readAddress(client.url);
  if (!page) {
    return commonPage();
  }
  if (pages.size >= MOST_CLIENTS) {
    pages.clear();
  }
  pages.set(id, page);
  return page;
}

/**
 * What all open pages have in common, for frames that have no URL of their own (`about:blank`, `srcdoc`): nobody tells whose
 * they are. Null where pages of different times or collections are open.
 */
async function commonPage() {
  const clients = await self.clients.matchAll({ type: "all" });
  const open = clients.map((client) => readAddress(client.url)).filter(Boolean);
  const [first] = open;
  const agree = (own) => own.collection === first.collection && own.time === first.time;
  if (!first || !open.every(agree)) {
    return null;
  }
  const isOneHost = open.every((own) => own.url.origin === first.url.origin);
  return { ...first, url: isOneHost ? first.url : null };
}

/** The capture that a request of a page means; null if nobody can tell. */
function placeOf(text, page) {
  const url = parse(text);
  if (!url || !/^(https?|ftp):$/.test(url.protocol)) {
    return null;
  }
  if (url.origin !== self.location.origin) {
    return page && { ...page, url };
  }
  const address = readAddress(text);
  if (address) {
    return address;
  }
  // A path of the host that the page was captured from.
  return page?.url ? { ...page, url: new URL(url.pathname + url.search, page.url) } : null;
}

/** Asks the server for a capture. */
async function ask(place, modifier, request, exchange) {
  const headers = new Headers({ [FIELD]: request.destination || "empty" });
  for (const name of TOLD) {
    const value = request.headers.get(name);
    if (value !== null) {
      headers.set(name, value);
    }
  }
  return fetch(pathOf(place, modifier), {
    method: exchange.method,
    body: exchange.body,
    headers,
    mode: "same-origin",
    credentials: "omit",
    redirect: "manual",
    referrerPolicy: "no-referrer",
    cache: request.cache === "only-if-cached" ? "default" : request.cache,
  });
}

/** The method and body of a request. */
async function exchangeOf(request) {
  const { method } = request;
  if (method === "GET" || method === "HEAD") {
    return { method, body: undefined };
  }
  const body = await request.arrayBuffer();
  return { method, body: body.byteLength > 0 ? body.slice(0, LONGEST_BODY) : undefined };
}

/** Where an archived redirect leads: `undefined` if the answer is no redirect, null if it leads nowhere on the web. */
function redirectOf(answer, place) {
  if (!answer.headers.has("x-redirect-status")) {
    return undefined;
  }
  const location = asUtf8(answer.headers.get("x-orig-location") ?? "");
  const url = parse(location, place.url);
  return url && /^(https?|ftp):$/.test(url.protocol) ? url : null;
}

/** A field as the archived server meant it: header values come one character a byte. */
function asUtf8(value) {
  const bytes = Uint8Array.from(value, (character) => character.charCodeAt(0) & 255);
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    return value;
  }
}

/** The exchange behind a redirect: the method changes as browsers change it. */
function redirected(exchange, status) {
  const isPost = exchange.method === "POST" && (status === 301 || status === 302);
  const isSeen = status === 303 && exchange.method !== "HEAD";
  return isPost || isSeen ? { method: "GET", body: undefined } : exchange;
}

/** Answers what a page loads. */
async function resource(event) {
  const { request } = event;
  let place = placeOf(request.url, await pageOf(event.clientId));
  if (!place) {
    return notice(404, "Not in the archive", "Nobody can tell which capture this request means.");
  }
  let exchange = await exchangeOf(request);
  for (let redirects = 0; redirects <= MOST_REDIRECTS; redirects += 1) {
    const answer = await ask(place, RAW, request, exchange);
    const url = redirectOf(answer, place);
    if (url === undefined) {
      return answer;
    }
    if (!url || request.redirect === "error") {
      return Response.error();
    }
    exchange = redirected(exchange, Number(answer.headers.get("x-redirect-status")));
    place = { ...place, url };
  }
  return Response.error();
}

/** Answers a navigation within a frame. */
async function page(event, address) {
  const { request } = event;
  if (!address) {
    return wayBack(event);
  }
  const answer = await ask(address, address.modifier, request, await exchangeOf(request));
  const url = redirectOf(answer, address);
  if (url === undefined) {
    return answer;
  }
  if (!url) {
    return notice(404, "Not in the archive", "This page was a redirect that leads nowhere on the web.");
  }
  return leadTo({ ...address, url }, address.modifier);
}

/**
 * A navigation to a path of an archived site. It has no client yet in most browsers; then the page that it comes from is the
 * one that its referrer names.
 */
async function wayBack(event) {
  const { request } = event;
  const from = event.clientId ? await pageOf(event.clientId) : readAddress(request.referrer);
  const place = placeOf(request.url, from);
  if (!place) {
    return notice(404, "Not in the archive", "Nobody can tell from which page this address was reached.");
  }
  return leadTo(place, "mp_");
}

/** A redirect to a capture. */
function leadTo(place, modifier) {
  return Response.redirect(self.location.origin + pathOf(place, modifier) + place.url.hash, 302);
}

/** An answer in words, in which nothing acts. The words are our own. */
function notice(status, title, words) {
  const html = `<!doctype html><meta charset="utf-8"><title>${title}</title><h1>${title}</h1><p>${words}</p>`;
  return new Response(html, {
    status,
    headers: {
      "content-type": "text/html; charset=utf-8",
      "content-security-policy": "sandbox; default-src 'none'",
      "cache-control": "no-store",
    },
  });
}

/** An answer where asking failed: the server is down. The live web is never asked in its place. */
function failed() {
  return notice(503, "Not available now", "The archive does not answer; try again in a moment.");
}

self.addEventListener("install", () => {
  self.skipWaiting();
});

self.addEventListener("fetch", (event) => {
  const { request } = event;
  if (request.mode !== "navigate") {
    event.respondWith(resource(event).catch(failed));
    return;
  }
  const address = readAddress(request.url);
  // Navigations reach this worker for its own host alone, so that the server answers those that are left to it.
  if (FRAMES.has(request.destination) && (!address || PAGES.has(address.modifier))) {
    event.respondWith(page(event, address).catch(failed));
  }
});
