// The live parts of a page load themselves again at "happened". The page's script says "changed" instead, so that no change is missed:
// a part that is being replaced hears nothing, and what it is replaced with may be older than the change.
"use strict";

(() => {
  const body = document.body;
  const happened = () => body.dispatchEvent(new CustomEvent("happened"));
  // What was being loaded at a change, until it has ended.
  const loading = new Set();

  body.addEventListener("changed", () => {
    for (const part of document.querySelectorAll(".htmx-request")) loading.add(part);
    happened();
  });

  body.addEventListener("htmx:afterRequest", () => {
    let missed = false;
    for (const part of loading) {
      if (part.isConnected && part.classList.contains("htmx-request")) continue;
      loading.delete(part);
      missed = true;
    }
    if (missed) happened();
  });
})();
