// Before the page is open: keeps the secret of a session that begins here, and asks for the page with it.
"use strict";

// A window that goes to an address sends no header of ours, and so the daemon answers it as it answers a stranger. This
// script, which that answer brings, asks for the same address again with the session's secret, and shows what comes.
(() => {
  const KEY = "signerd-session";
  const begun = document.body.dataset.session;
  if (begun) {
    localStorage.setItem(KEY, begun);
    // In the place of the answer that has the secret in it: going back does not lead there.
    location.replace("/");
    return;
  }

  const secret = localStorage.getItem(KEY);
  if (!secret) return;
  const here = document.documentElement;
  here.hidden = true;
  (async () => {
    try {
      // Whole: a path that begins with two slashes would be another host's address, and that host would get the secret.
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
      // The daemon is gone: what stands here says how to come in.
    }
    here.hidden = false;
  })();
})();
