// The live parts of a page load themselves again at "happened". The page's script says "changed" instead, so that no change is missed:
// a part that is being replaced hears nothing, and what it is replaced with may be older than the change.
"use strict";

(() => {
  const body = document.body;
  let missed = false;
  const isReplacing = () => document.querySelector(".htmx-request, .htmx-settling") !== null;
  const refresh = () => {
    missed = isReplacing();
    body.dispatchEvent(new CustomEvent("happened"));
  };
  const again = () => {
    if (missed && !isReplacing()) refresh();
  };
  body.addEventListener("changed", refresh);
  for (const end of ["htmx:afterRequest", "htmx:afterSettle"]) body.addEventListener(end, again);
})();
