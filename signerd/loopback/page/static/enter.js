// Before the page is open: stores a new session's secret, and requests the page with it.
"use strict";

// A navigation sends no header of ours, so the daemon answers it as a stranger's. That answer loads this script, which
// requests the same address again with the session's secret and shows the response.
(() => {
  const KEY = "signerd-session";
  const begun = document.body.dataset.session;
  if (begun) {
    localStorage.setItem(KEY, begun);
    // Replaces the document with the secret, so that going back does not lead to it.
    location.replace("/");
    return;
  }

  const secret = localStorage.getItem(KEY);
  if (!secret) return;
  const here = document.documentElement;
  here.hidden = true;
  (async () => {
    try {
      // With the origin: a path that begins with two slashes would name another host, which would get the secret.
      const address = location.origin + location.pathname + location.search;
      const answer = await fetch(address, { headers: { "X-Signerd-Session": secret } });
      if (answer.status === 401) localStorage.removeItem(KEY);
      else if ((answer.headers.get("Content-Type") || "").startsWith("text/html")) {
        const page = await answer.text();
        document.open();
        document.write(page);
        document.close();
      }
    } catch {
      // The daemon does not answer: this document says how to enter.
    }
    here.hidden = false;
  })();
})();
