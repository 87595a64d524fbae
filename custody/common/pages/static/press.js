// A press acts on what has stood where it is for a second: neither the second click of a double click nor a press that was meant for what a
// refreshed part has moved away does anything (L17). On the signer's page and in the console, where it comes before all other scripts.
"use strict";

(() => {
  const SETTLED_MS = 1000;
  const NEAR = 8;
  const CONTROLS = "button:not([type=button]), input[type=submit], summary";
  // Fresh in each answer, whatever the form does.
  const CHANGING = new Set(["form_token", "key"]);

  // The last press, also in the document before this one: of the pointer with its place, of the keyboard without.
  const PRESSED = "pressed";
  let pressed = null;
  try {
    pressed = JSON.parse(sessionStorage.getItem(PRESSED));
  } catch {
    // This browser stores nothing for the page: the press counts in its own document alone.
  }
  const keep = (press) => {
    pressed = press;
    try {
      sessionStorage.setItem(PRESSED, JSON.stringify(press));
    } catch {
      // As above.
    }
  };
  const wasPressedAt = (box) =>
    pressed && !pressed.keys && pressed.x >= box.left - NEAR && pressed.x <= box.right + NEAR && pressed.y >= box.top - NEAR && pressed.y <= box.bottom + NEAR;

  // What the control does, for a part that was replaced has other elements.
  const action = (control) => {
    const form = control.form;
    const values = [...(form?.elements ?? [])].filter((one) => one.type === "hidden" && !CHANGING.has(one.name)).map((one) => one.value);
    return [form?.getAttribute("action"), control.name, control.value, control.textContent.trim(), ...values].join("\n");
  };

  // By each control's action: where it was, in the window and in the document, and from when on it takes presses.
  let known = null;
  const look = () => {
    const now = Date.now();
    const found = new Map();
    let next = Infinity;
    for (const control of document.querySelectorAll(CONTROLS)) {
      const box = control.getBoundingClientRect();
      let does = action(control);
      while (found.has(does)) does += "+";
      const here = { x: box.left, y: box.top, left: box.left + scrollX, top: box.top + scrollY, ready: 0 };
      const before = known?.get(does);
      const near = (x, y) => before && Math.abs(here[x] - before[x]) <= NEAR && Math.abs(here[y] - before[y]) <= NEAR;
      if (near("x", "y") || near("left", "top")) here.ready = before.ready;
      else if (known !== null) here.ready = now + SETTLED_MS;
      if (wasPressedAt(box)) here.ready = Math.max(here.ready, pressed.at + SETTLED_MS);
      found.set(does, here);
      const waits = here.ready > now;
      if (waits) next = Math.min(next, here.ready);
      control.pressReady = here.ready;
      if (control.matches("summary") || waits === control.hasAttribute("aria-disabled")) continue;
      if (waits) control.setAttribute("aria-disabled", "true");
      else control.removeAttribute("aria-disabled");
    }
    known = found;
    if (next < Infinity) setTimeout(look, next - now + 1);
  };

  // A press that was lost is said to whoever made it, and not where it repeats one that acted: the last press was there, too.
  const LOST = "Nothing was done: this came here a moment ago. Press it again.";
  const line = Object.assign(document.createElement("p"), { className: "lost" });
  line.setAttribute("aria-live", "polite");
  addEventListener("DOMContentLoaded", () => document.body.append(line));
  const TOLD_MS = 6000;
  let told = 0;
  const tell = (words, control) => {
    line.textContent = words;
    clearTimeout(told);
    if (words) told = setTimeout(tell, TOLD_MS, "", null);
    for (const shaken of document.querySelectorAll(".shaken")) shaken.classList.remove("shaken");
    control?.classList.add("shaken");
  };

  // A key that is held, or struck twice with nothing typed between, is one press, wherever the focus has gone meanwhile.
  const typed = (event) => {
    if (pressed?.keys && event.key !== "Enter" && event.key !== " ") keep(null);
  };
  for (const types of ["keydown", "input"]) addEventListener(types, typed, true);

  addEventListener("click", (event) => {
    const control = event.target.closest?.(CONTROLS);
    if (!event.isTrusted || !control) return;
    const now = Date.now();
    const keys = event.detail === 0;
    look();
    const again = keys && pressed?.keys && now < pressed.at + SETTLED_MS;
    // Who sends a form from a field of it has seen the form.
    const inField = keys && document.activeElement?.matches("input, textarea, select");
    const acts = !again && (inField || now >= control.pressReady);
    const repeats = again || event.detail > 1 || (now < pressed?.at + SETTLED_MS && wasPressedAt(control.getBoundingClientRect()));
    if (!acts) {
      event.preventDefault();
      event.stopImmediatePropagation();
    }
    if (acts || !repeats) tell(acts ? "" : LOST, acts ? null : control);
    keep(keys ? { keys, at: now } : { x: event.clientX, y: event.clientY, at: now });
    if (!keys) look();
  }, true);

  new MutationObserver(look).observe(document.documentElement, {
    subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: ["open", "hidden", "inert"],
  });
  // A field grows with what is typed into it; what is scrolled may come to where the last press was.
  for (const moves of ["resize", "load", "input", "scroll"]) addEventListener(moves, look, true);
  look();
})();
