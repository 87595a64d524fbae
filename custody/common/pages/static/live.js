// The live parts of a page load themselves again at "happened". The page's script says "changed" instead, so that no change is missed:
// a part that is being replaced hears nothing, and what it is replaced with may be older than the change.
"use strict";

(() => {
  const body = document.body;
  const happened = () => body.dispatchEvent(new CustomEvent("happened"));
  // What was being loaded at a change, until it has ended; and whether some of it has ended since.
  const loading = new Set();
  let missed = false;
  const isSettling = () => document.querySelector(".htmx-settling") !== null;

  body.addEventListener("changed", () => {
    for (const part of document.querySelectorAll(".htmx-request")) loading.add(part);
    missed ||= isSettling();
    happened();
  });

  const again = () => {
    for (const part of loading) {
      if (part.isConnected && part.classList.contains("htmx-request")) continue;
      loading.delete(part);
      missed = true;
    }
    // A new part listens once it has settled.
    if (!missed || isSettling()) return;
    missed = false;
    happened();
  };
  for (const end of ["htmx:afterRequest", "htmx:afterSettle"]) body.addEventListener(end, again);
})();
