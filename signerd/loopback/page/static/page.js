// Live updates: each line of the feed makes the live parts of the page refresh themselves.
"use strict";

// The page is inert until the scripts have loaded: a form submitted before would carry no session, and be refused. This file comes
// before htmx, so that its first request has the session's secret too.
document.addEventListener("DOMContentLoaded", () => {
  document.getElementById("main").inert = false;
  if (document.activeElement === document.body) document.querySelector("main [autofocus]")?.focus();
});

(() => {
  // The session's secret is in this origin's storage: a server on another port of this host never gets it (L12).
  const session = () => ({ "X-Signerd-Session": localStorage.getItem("signerd-session") ?? "" });
  document.body.addEventListener("htmx:configRequest", (event) => Object.assign(event.detail.headers, session()));

  // A burst of lines causes one refresh.
  const SETTLE_MS = 150;
  const SPOKEN = new Set(["ask", "question", "progress", "device", "attention", "trouble", "alarm"]);

  const body = document.body;
  const heard = document.getElementById("heard");
  const connection = document.getElementById("connection");
  if (!body.dataset.position) return;

  let waiting = null;
  const happened = () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => body.dispatchEvent(new CustomEvent("changed")), SETTLE_MS);
  };

  // Text in backticks is a command, as in the templates' filter "sentence".
  const put = (place, words) =>
    place.replaceChildren(
      ...words.split(/`([^`]+)`/).map((part, at) => (at % 2 ? Object.assign(document.createElement("code"), { textContent: part }) : part)),
    );

  const tell = (words) => {
    connection.hidden = words === "";
    put(connection, words);
  };

  // The address ends with the daemon, and whoever takes the port then would be asked at it (L15). So once the stream has ended, however
  // it did, this document asks nothing more.
  const OVER = "Not connected: signerd was stopped, or this page was idle too long. What it shows may be out of date. "
    + `Unless signerd runs, start it: \`${body.dataset.command} run\`. Then open the page again: \`${body.dataset.command} open\``;
  const UNHEARD = "signerd did not answer. What this page shows may be out of date.";
  let over = false;
  const end = () => {
    over = true;
    tell(OVER);
  };
  body.addEventListener("htmx:beforeRequest", (event) => {
    if (!over) return;
    event.preventDefault();
    event.stopImmediatePropagation();
    const place = event.detail.elt.querySelector(".problem");
    if (place) put(place, `Nothing was sent. ${OVER}`);
  });

  // A link carries no session, so a download is fetched with it and saved under its name.
  const KEPT_MS = 60000;
  body.addEventListener("click", async (event) => {
    const link = event.target.closest("a[data-keep]");
    if (link === null) return;
    event.preventDefault();
    if (over) return;
    const answer = await fetch(link.href, { headers: session() }).catch(() => null);
    if (!answer?.ok) {
      tell("The file could not be loaded. Load the page again.");
      return;
    }
    const file = document.createElement("a");
    file.href = URL.createObjectURL(await answer.blob());
    file.download = /filename="([^"]+)"/.exec(answer.headers.get("Content-Disposition"))?.[1] ?? "signerd";
    file.click();
    setTimeout(() => URL.revokeObjectURL(file.href), KEPT_MS);
  });

  // A line that a part of the page shows itself is not repeated, except for an alarm.
  const isTold = (line) =>
    line.kind !== "alarm" && [...document.querySelectorAll("[data-tells]")].some((part) => part.dataset.tells === line.subject);

  // Whoever reads a line elsewhere sees which proposal it is about.
  let spoken = 0;
  const name = async ({ subject }, number) => {
    if (over) return;
    const answer = await fetch(`/title?subject=${encodeURIComponent(subject)}`, { headers: session() }).catch(() => null);
    const title = answer?.ok ? await answer.text() : "";
    if (!title || number !== spoken) return;
    heard.append(" ", Object.assign(document.createElement("a"), { href: `/proposals/${subject}`, textContent: title }));
  };

  const heed = (line) => {
    if (SPOKEN.has(line.kind) && !isTold(line)) {
      heard.className = `heard ${line.kind}`;
      heard.dataset.about = line.subject;
      put(heard, line.text);
      name(line, ++spoken);
    } else if (line.kind === "state" && heard.dataset.about === line.subject && (!heard.classList.contains("alarm") || line.text === "declined")) {
      // The state is shown in its own place; the earlier line is out of date. An alarm is ended by the person alone.
      heard.textContent = "";
      spoken += 1;
    }
    happened();
  };

  // The lines of one stream, until it ends. An EventSource cannot send our header.
  const leaving = new AbortController();
  const read = async (stream) => {
    const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ; ) {
      const { value, done } = await reader.read();
      if (done) return;
      const events = (rest + value).split("\n\n");
      rest = events.pop();
      for (const event of events) {
        const data = event.split("\n").find((field) => field.startsWith("data: "));
        if (data === undefined) continue;
        heed(JSON.parse(data.slice("data: ".length)));
      }
    }
  };

  const follow = async () => {
    try {
      const answer = await fetch(`/v1/events?after=${body.dataset.position}`, { headers: session(), signal: leaving.signal });
      if (answer.ok) await read(answer.body);
    } catch {
      // The connection broke, or there was none.
    }
    if (!leaving.signal.aborted) end();
  };
  follow();

  // An error that is not HTML (from the access checks) is shown as text in the form, not swapped into the page.
  body.addEventListener("htmx:beforeSwap", (event) => {
    const { xhr, elt } = event.detail;
    if (xhr.status < 400 || (xhr.getResponseHeader("Content-Type") || "").startsWith("text/html")) return;
    event.detail.shouldSwap = false;
    let words = "The request was refused. Load the page again.";
    try {
      const problem = JSON.parse(xhr.responseText);
      words = `${problem.detail} ${problem.hint}`;
    } catch {
      // Not a problem document: keep the general sentence.
    }
    const place = elt.querySelector(".problem");
    if (place) put(place, words);
    else tell(words);
  });

  // A removed form loses the focus, which then moves to the form's outcome. That comes with the response, or with a part that
  // was refreshed before it. A part that contains a form of the same id has not removed it: the id names the question.
  const PATIENCE_MS = 1000;
  let sent = null;
  let answered = false;
  body.addEventListener("htmx:beforeRequest", (event) => {
    const { elt } = event.detail;
    if (elt.tagName !== "FORM") return;
    // Clears the problem of the last attempt.
    elt.querySelector(".problem")?.replaceChildren();
    sent = elt;
    answered = false;
  });
  body.addEventListener("htmx:afterRequest", (event) => {
    const { elt: form, verb, triggeringEvent } = event.detail.requestConfig;
    // What a part shows while a device is asked is over with the answer, whatever it is.
    if (verb === "post") happened();
    if (form !== sent || sent === null) return;
    answered = true;
    // A form that is still there was refused, and says why. Otherwise the outcome is here, or arrives shortly.
    if (form.isConnected) {
      sent = null;
      // While it was sent, its button was disabled and lost the focus.
      if (triggeringEvent?.submitter?.id && document.activeElement === body) triggeringEvent.submitter.focus();
    } else setTimeout(() => { if (sent === form) sent = null; }, PATIENCE_MS);
  });
  const isOver = (form) => !form.isConnected && (answered || !(form.id && document.getElementById(form.id)));

  // A refreshed part keeps the focus on the element of the same id. The approving button has no id: after the refresh it may
  // approve something else (S24).
  let kept = "";
  body.addEventListener("htmx:beforeSwap", (event) => {
    const { shouldSwap, target } = event.detail;
    const focused = document.activeElement;
    if (shouldSwap && focused !== body && target?.contains(focused)) kept = focused.id;
  });

  const focus = (element) => {
    if (!element.matches("a, button, input, select, textarea")) element.tabIndex = -1;
    element.focus();
  };

  body.addEventListener("htmx:afterSettle", () => {
    const over = sent !== null && isOver(sent) ? sent : null;
    const again = kept && document.getElementById(kept);
    const isGone = kept && !again;
    kept = "";
    if (over !== null) sent = null;
    // Leaves the focus where the person has moved it meanwhile.
    if (document.activeElement !== body) return;
    if (over === null) {
      if (again) focus(again);
      // What a refresh took away had an answer, or needs none any more.
      else if (isGone) focus(document.querySelector("main [role=alert]") || document.getElementById("main"));
      return;
    }
    focus(
      // A form in its place names where to continue.
      document.querySelector("main [autofocus]") ||
        document.querySelector("main [role=alert]") ||
        document.getElementById(over.dataset.then || "main") ||
        document.getElementById("main"),
    );
  });

  // Its answer may have been lost after signerd acted. A form that is gone takes the sentence with it.
  body.addEventListener("htmx:sendError", (event) => {
    const place = event.detail.elt.querySelector(".problem");
    if (place) put(place, "No answer came: signerd may have received it. This page shows how it stands as soon as it knows.");
    else if (!over) tell(UNHEARD);
  });
  body.addEventListener("htmx:afterRequest", (event) => {
    if (event.detail.successful && connection.textContent === UNHEARD) tell("");
  });

  window.addEventListener("pagehide", () => leaving.abort());
  // A page from the back-forward cache is out of date.
  window.addEventListener("pageshow", (event) => {
    if (event.persisted) location.reload();
  });
})();

// Notes that were put off are hidden until they say something else, for as long as this tab is open.
(() => {
  const LATER = "signerd-later";
  const hide = () => {
    for (const notes of document.querySelectorAll("[data-later]")) notes.hidden = sessionStorage.getItem(LATER) === notes.dataset.later;
  };
  document.body.addEventListener("click", (event) => {
    const notes = event.target.closest("button") && event.target.closest("[data-later]");
    if (!notes) return;
    sessionStorage.setItem(LATER, notes.dataset.later);
    hide();
  });
  document.body.addEventListener("htmx:afterSettle", hide);
  hide();
})();

// The PIN matrix, by buttons and by the number pad; a file as the text of a field. Nothing is stored.
(() => {
  const say = (form) => {
    const field = form.querySelector("[data-places]");
    const typed = field.value.length;
    form.querySelector("[data-count]").textContent = `${typed} ${typed === 1 ? "place" : "places"} typed`;
  };

  const type = (form, place) => {
    const field = form.querySelector("[data-places]");
    if (place === null) field.value = field.value.slice(0, -1);
    else if (field.value.length < field.maxLength) field.value += place;
    say(form);
  };

  document.body.addEventListener("click", (event) => {
    const key = event.target.closest("[data-place]");
    if (key) type(key.form, key.dataset.place);
  });

  document.body.addEventListener("keydown", (event) => {
    if (!event.target.matches("[data-place]") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^[1-9]$/.test(event.key)) type(event.target.form, event.key);
    else if (event.key === "Backspace") type(event.target.form, null);
    else return;
    event.preventDefault();
  });

  document.body.addEventListener("input", (event) => {
    if (!event.target.matches("[data-places]")) return;
    event.target.value = event.target.value.replace(/[^1-9]/g, "");
    say(event.target.form);
  });

  document.body.addEventListener("reset", (event) => {
    if (event.target.querySelector("[data-places]")) setTimeout(() => say(event.target));
  });

  const PSBT = "psbt\xff";
  document.body.addEventListener("change", async (event) => {
    const chooser = event.target;
    if (!chooser.matches("input[type=file][data-into]") || !chooser.files.length) return;
    const field = document.getElementById(chooser.dataset.into);
    const problem = chooser.form.querySelector(".problem");
    const file = chooser.files[0];
    problem.textContent = "";
    if (file.size === 0 || file.size > field.maxLength) {
      problem.textContent = file.size ? `This file is too large for what is read here. ${chooser.dataset.else}` : "This file is empty.";
      return;
    }
    const bytes = Array.from(new Uint8Array(await file.arrayBuffer()), (byte) => String.fromCharCode(byte)).join("");
    field.value = bytes.startsWith(PSBT) ? btoa(bytes) : bytes;
    const source = chooser.form.querySelector("[name=source][value=psbt]");
    if (bytes.startsWith(PSBT) && source) source.checked = true;
  });
})();

// An animated series of QR codes; and a download made from its button's data.
(() => {
  const TURN_MS = 250;
  setInterval(() => {
    for (const series of document.querySelectorAll("[data-frames]")) {
      const frames = [...series.children];
      const shown = frames.findIndex((frame) => !frame.hidden);
      frames[shown].hidden = true;
      frames[(shown + 1) % frames.length].hidden = false;
    }
  }, TURN_MS);

  document.body.addEventListener("click", (event) => {
    const button = event.target.closest("[data-save]");
    if (!button) return;
    const bytes = Uint8Array.from(atob(button.dataset.save), (char) => char.charCodeAt(0));
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([bytes]));
    link.download = button.dataset.name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
})();
