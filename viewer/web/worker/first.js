(function install() {
  "use strict";
  // Ways to hosts that no policy stops and no service worker sees.
  for (const name of [
    "RTCPeerConnection", "webkitRTCPeerConnection", "RTCDataChannel", "WebTransport", "WebSocketStream",
    "PresentationRequest", "PaymentRequest", "BackgroundFetchManager", "BackgroundFetchRegistration",
    "IdentityCredential", "SharedStorage",
  ]) {
    delete self[name];
  }
  for (const name of ["serviceWorker", "presentation", "joinAdInterestGroup", "runAdAuction", "login"]) {
    delete Navigator.prototype[name];
  }

  // The address of this page: /<collection>/<time><modifier>/ and the URL that it was captured from.
  const address = /^(\/[^/]+\/[^/]+\/)((?:https?|ftp):\/.*)$/i;
  const own = new URL(document.baseURI);
  const found = address.exec(own.pathname);
  const original = found && found[2].replace(/^([a-z]+):\/+/i, "$1://") + own.search;

  // The address of the capture that a reference means; other references stay as they are.
  const archived = (reference) => {
    let url;
    try {
      url = new URL(reference, document.baseURI);
    } catch {
      return reference;
    }
    if (!found || !/^https?:$/.test(url.protocol)) {
      return reference;
    }
    if (url.origin === self.origin) {
      if (address.test(url.pathname)) {
        return reference;
      }
      url = new URL(url.pathname + url.search + url.hash, original);
    }
    return found[1] + url.href;
  };

  // Attributes that connect to hosts, or make frames that pass by the service worker.
  const connects = /(?:^|\s)(?:preconnect|dns-prefetch|prerender|expect)(?:\s|$)/i;
  const replaced = (element, name, value) => {
    const text = String(value);
    if (element instanceof HTMLLinkElement && name === "rel" && connects.test(text)) {
      return null;
    }
    if (element instanceof HTMLIFrameElement) {
      if (name === "sandbox" || name === "credentialless" || name === "csp") {
        return null;
      }
      if (name === "src") {
        return archived(text);
      }
    }
    return element instanceof HTMLFrameElement && name === "src" ? archived(text) : text;
  };
  const setAttribute = Element.prototype.setAttribute;
  Element.prototype.setAttribute = function (name, value) {
    const text = replaced(this, String(name).toLowerCase(), value);
    if (text !== null) {
      setAttribute.call(this, name, text);
    }
  };
  for (const [type, name] of [
    [HTMLLinkElement, "rel"], [HTMLIFrameElement, "src"], [HTMLFrameElement, "src"],
    [HTMLIFrameElement, "sandbox"], [HTMLIFrameElement, "credentialless"], [HTMLIFrameElement, "csp"],
  ]) {
    const known = Object.getOwnPropertyDescriptor(type.prototype, name);
    if (known) {
      Object.defineProperty(type.prototype, name, {
        ...known,
        set(value) {
          const text = replaced(this, name, value);
          if (text !== null) {
            known.set.call(this, text);
          }
        },
      });
    }
  }

  // The same in markup that scripts write.
  const hints = /<link\b[^>]*\b(?:preconnect|dns-prefetch|prerender)\b[^>]*>/gi;
  const walls = /(<iframe\b[^>]*?)\s(?:sandbox|credentialless|csp)\b(?:\s*=\s*(?:"[^"]*"|'[^']*'|[^\s>]*))?/gi;
  const tidy = (markup) => {
    const text = String(markup);
    return /<(?:iframe|link)\b/i.test(text) ? text.replace(hints, "").replace(walls, "$1").replace(walls, "$1") : markup;
  };
  for (const name of ["innerHTML", "outerHTML"]) {
    const known = Object.getOwnPropertyDescriptor(Element.prototype, name);
    Object.defineProperty(Element.prototype, name, {
      ...known,
      set(markup) {
        known.set.call(this, tidy(markup));
      },
    });
  }
  const insertAdjacentHTML = Element.prototype.insertAdjacentHTML;
  Element.prototype.insertAdjacentHTML = function (place, markup) {
    insertAdjacentHTML.call(this, place, tidy(markup));
  };
  for (const name of ["write", "writeln"]) {
    const known = Document.prototype[name];
    Document.prototype[name] = function (...markup) {
      known.apply(this, markup.map(tidy));
    };
  }

  // A frame without an address of its own is not seen by the service worker: it reaches this host and no other.
  const policy = "default-src 'self' data: blob: 'unsafe-inline' 'unsafe-eval'; frame-src 'self'; worker-src 'none'";
  const inner = Object.getOwnPropertyDescriptor(HTMLIFrameElement.prototype, "contentWindow").get;
  const tamed = new WeakSet();
  const tame = (frame) => {
    try {
      const own = inner.call(frame);
      if (own && own.location.href === "about:blank" && !tamed.has(own.document)) {
        tamed.add(own.document);
        own.eval(`(${install})()`);
        const meta = own.document.createElement("meta");
        meta.httpEquiv = "Content-Security-Policy";
        meta.content = policy;
        (own.document.head ?? own.document.documentElement).append(meta);
        meta.remove();
      }
    } catch {
      // It is of another origin, and out of reach.
    }
  };
  for (const name of ["contentWindow", "contentDocument"]) {
    const known = Object.getOwnPropertyDescriptor(HTMLIFrameElement.prototype, name);
    Object.defineProperty(HTMLIFrameElement.prototype, name, {
      ...known,
      get() {
        tame(this);
        return known.get.call(this);
      },
    });
  }
  const keep = (frame) => {
    if (["sandbox", "credentialless", "csp"].filter((name) => frame.hasAttribute(name)).length > 0) {
      const free = frame.cloneNode();
      for (const name of ["sandbox", "credentialless", "csp"]) {
        free.removeAttribute(name);
      }
      frame.replaceWith(free);
      return;
    }
    tame(frame);
    frame.addEventListener("load", () => tame(frame));
  };
  const watch = new MutationObserver((changes) => {
    for (const node of changes.flatMap((change) => [...change.addedNodes])) {
      if (node instanceof HTMLIFrameElement) {
        keep(node);
      } else if (node instanceof Element) {
        node.querySelectorAll("iframe").forEach(keep);
      }
    }
  });
  watch.observe(document, { childList: true, subtree: true });
  const attachShadow = Element.prototype.attachShadow;
  Element.prototype.attachShadow = function (options) {
    const root = attachShadow.call(this, options);
    watch.observe(root, { childList: true, subtree: true });
    return root;
  };

  // A request that blocks the page passes by the service worker: it asks for the capture as it is.
  const open = XMLHttpRequest.prototype.open;
  XMLHttpRequest.prototype.open = function (method, url, ...rest) {
    const isBlocking = rest.length > 0 && !rest[0];
    const own = isBlocking ? archived(url).replace(/^(\/[^/]+\/\d*)[a-z]+_\//, "$1id_/") : url;
    return open.call(this, method, own, ...rest);
  };

  // Text that becomes a part of the page is read before anybody can look at its elements.
  const written = (text) => String(text).replace(/<link\b[^>]*>/gi, (link) => (/preconnect|dns-prefetch|prerender/i.test(link) ? "" : link));
  for (const name of ["write", "writeln"]) {
    const known = Document.prototype[name];
    Document.prototype[name] = function (...texts) {
      return known.call(this, written(texts.join("")));
    };
  }

  // Scripts that leave for another page leave for its capture.
  self.navigation?.addEventListener("navigate", (event) => {
    const to = event.destination;
    const inside = archived(to.url);
    if (inside !== to.url && event.cancelable && !to.sameDocument && !event.formData && event.downloadRequest === null) {
      event.preventDefault();
      location.assign(inside);
    }
  });

  // A target that is no frame of the archived site would be a new window, which the sandbox stops.
  const isFrame = (name) => {
    for (let frame = self; ; frame = frame.parent) {
      try {
        if (frame.frames[name]?.window === frame.frames[name] && frame.frames[name]) {
          return true;
        }
      } catch {
        return false;
      }
      if (frame === frame.parent) {
        return false;
      }
    }
  };
  const keepInside = (element) => {
    const target = element?.getAttribute("target") ?? document.querySelector("base[target]")?.target;
    if (element && target && target.toLowerCase() !== "_self" && !isFrame(target)) {
      setAttribute.call(element, "target", "_self");
    }
  };
  addEventListener("click", (event) => keepInside(event.target.closest?.("a[href],area[href]")), true);
  addEventListener("submit", (event) => keepInside(event.target), true);

  // The page around the frame may say what is shown. It has to take this for the words of a stranger.
  if (parent !== self && parent === top) {
    addEventListener("DOMContentLoaded", () => {
      const page = { address: location.pathname + location.search, title: document.title };
      parent.postMessage({ replay: page }, "*");
    });
  }
  if (history.state?.replayLoads) {
    history.replaceState(null, "");
  }
  document.currentScript?.remove();
})();
