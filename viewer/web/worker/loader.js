(async () => {
  "use strict";
  const say = (id) => {
    document.getElementById("wait").hidden = true;
    document.getElementById(id).hidden = false;
  };
  const { page, own } = document.documentElement.dataset;
  if (self === top) {
    if (page) {
      location.replace(page);
    } else {
      say("alone");
    }
    return;
  }
  // A worker that does not take over would make this page load itself without an end.
  const loads = history.state?.replayLoads ?? 0;
  if (!navigator.serviceWorker || loads >= 3) {
    say("failed");
    return;
  }
  try {
    await navigator.serviceWorker.register("/static/worker.js", { scope: "/", updateViaCache: "none" });
    await navigator.serviceWorker.ready;
  } catch {
    say("failed");
    return;
  }
  // The address is written in full, so that the worker reads it.
  history.replaceState({ replayLoads: loads + 1 }, "", own + location.hash);
  location.reload();
})();
