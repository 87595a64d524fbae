// Everything works without this file: it loads the parts of a page again when something changed.
"use strict";

(() => {
  const body = document.body;
  const AGAIN_MS = 3000;
  const changed = () => body.dispatchEvent(new CustomEvent("changed"));

  // The answer to a form is no page to come back to: Back and reload lead to the page of the form, and send nothing once more.
  const AT = "at";
  try {
    if (body.dataset.answer === undefined) sessionStorage.setItem(AT, location.href);
    else history.replaceState(null, "", sessionStorage.getItem(AT) ?? location.href);
  } catch {
    // This browser stores nothing for the page: it asks before it sends a form again.
  }

  const pause = () => new Promise((done) => setTimeout(done, AGAIN_MS));

  // Polls the workspace's changes as long as the page has parts that follow them.
  const leaving = new AbortController();
  const follow = async (path) => {
    let revision = "";
    for (let lost = false; !leaving.signal.aborted; ) {
      try {
        const answer = await fetch(`${path}?after=${revision}`, { signal: leaving.signal });
        if (answer.status === 200) {
          const first = revision === "";
          revision = (await answer.json()).revision;
          if (!first || lost) changed();
          lost = false;
        } else if (answer.status !== 204) {
          // The access token expired: loading a part renews it, or leads to the sign-in.
          changed();
          lost = true;
          await pause();
        }
      } catch {
        lost = true;
        if (!leaving.signal.aborted) await pause();
      }
    }
  };
  if (body.dataset.follow && document.querySelector(".live")) follow(body.dataset.follow);

  // A form is sent once; one that is sent twice all the same acts once, by its key.
  document.addEventListener("submit", (event) => {
    if (event.target.dataset.sent) event.preventDefault();
    event.target.dataset.sent = "yes";
  });
  window.addEventListener("pageshow", (event) => {
    for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
    // A page from the browser's back-forward cache is out of date.
    if (event.persisted) location.reload();
  });
  window.addEventListener("pagehide", () => leaving.abort());

  // A token in the fragment of a mail's link, which no server receives: it moves from the address into its field.
  const field = document.querySelector("[data-from-hash]");
  const token = new URLSearchParams(location.hash.slice(1)).get(field?.dataset.fromHash);
  if (field && token) {
    field.value = token;
    history.replaceState(null, "", location.pathname);
  }

  // A passkey: the browser asks the person, and the form sends the answer, even if its required fields are empty.
  const MAKERS = { create: "parseCreationOptionsFromJSON", get: "parseRequestOptionsFromJSON" };
  const known = window.PublicKeyCredential;
  for (const place of document.querySelectorAll("[data-passkeys]")) place.hidden = !known?.[MAKERS.get];
  body.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-passkey]");
    if (!button) return;
    const kind = button.dataset.passkey;
    try {
      const publicKey = known[MAKERS[kind]](JSON.parse(button.dataset.options));
      const answer = await navigator.credentials[kind]({ publicKey });
      button.form.elements[button.dataset.into].value = JSON.stringify(answer.toJSON());
      button.form.submit();
    } catch {
      const otherwise = kind === "get" ? ", or give a code" : "";
      button.nextElementSibling.textContent = `The browser gave no passkey. Try again${otherwise}.`;
    }
  });

  for (const button of document.querySelectorAll("[data-print]")) {
    button.hidden = false;
    button.addEventListener("click", () => window.print());
  }

  // Adds a row to a form: a recipient of a payment.
  body.addEventListener("click", (event) => {
    const button = event.target.closest("[data-add]");
    if (!button) return;
    event.preventDefault();
    const template = document.getElementById(button.dataset.add);
    template.parentElement.insertBefore(template.content.cloneNode(true), template);
    htmx.process(template.previousElementSibling);
    template.previousElementSibling.querySelector("input")?.focus();
  });
})();
