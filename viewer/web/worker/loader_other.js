(async () => {
  "use strict";
  const say = (id) => {
    document.getElementById("wait").hidden = true;
    document.getElementById(id).hidden = false;
  };
  const { page, own, collection } = document.documentElement.dataset;
  if (self === top) {
    if (page) {
      location.replace(page);
    } else {
      say("alone");
    }
    return;
  }
  const container = navigator.serviceWorker;
  const loads = history.state?.replayLoads ?? 0;
  if (!container || loads >= 3) {
    say("failed");
    return;
  }
  try {
    await container.register("/static/worker.js?replayPrefix=", { scope: "/", updateViaCache: "none" });
    const { active } = await container.ready;
    const added = new Promise((done) => {
      container.addEventListener("message", (event) => {
        if (event.data?.msg_type === "collAdded") {
          done();
        }
      });
    });
    container.startMessages();
    const prefix = `${location.origin}/`;
    active.postMessage({
      msg_type: "addColl",
      name: collection,
      type: "live",
      skipExisting: true,
      file: { sourceUrl: `proxy:${prefix}` },
      extraConfig: {
        prefix,
        isLive: false,
        archivePrefix: `${collection}/`,
        archiveMod: "ir_",
        baseUrl: page || prefix,
        noPostToGet: false,
      },
    });
    await added;
  } catch {
    say("failed");
    return;
  }
  history.replaceState({ replayLoads: loads + 1 }, "", own + location.hash);
  location.reload();
})();
