// The screens as they change, and the buttons. Everything that a device shows is text, and never markup.
"use strict";

(() => {
  const ENDED = {
    approved: "Approved.", refused: "Refused.", withdrawn: "The question was withdrawn.",
    unplugged: "Unplugged.", locked: "Locked.",
  };
  const state = document.getElementById("state");
  const places = [];

  const tell = (words) => {
    if (state.textContent !== words) state.textContent = words;
    state.hidden = words === "";
  };

  const press = async (device, button) => {
    const { number } = places[device].shown;
    if (places[device].buttons[button].getAttribute("aria-disabled") === "true") return;
    disable(places[device]);
    const answer = await fetch("live/press", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ device, number, button }),
    }).catch(() => null);
    if (!answer?.ok) tell(answer ? await answer.text() : "The program that showed this page has ended.");
  };

  const disable = (place) => {
    for (const button of Object.values(place.buttons)) button.setAttribute("aria-disabled", "true");
  };

  const added = (device) => {
    const section = document.getElementById("device").content.firstElementChild.cloneNode(true);
    section.querySelector("h2").id = `device-${device}`;
    section.setAttribute("aria-labelledby", `device-${device}`);
    const buttons = { left: section.querySelector(".left"), right: section.querySelector(".right") };
    // The button that has the focus stays where it is: a screen that changes does not move the focus.
    for (const [name, button] of Object.entries(buttons)) button.addEventListener("click", () => press(device, name));
    document.getElementById("devices").append(section);
    return { section, buttons, screen: section.querySelector(".screen"), shown: {} };
  };

  const draw = (device, shown) => {
    const place = (places[device] ??= added(device));
    if (JSON.stringify(place.shown) === JSON.stringify(shown)) return;
    place.shown = shown;
    place.section.querySelector("h2").textContent = shown.title;
    place.section.querySelector(".about").textContent = shown.about;
    place.section.classList.toggle("asks", shown.number > 0);
    place.screen.setAttribute("aria-label", `Screen of ${shown.title}`);
    const lines = shown.lines.length ? shown.lines : [ENDED[shown.ended] ?? "Ready."];
    place.screen.replaceChildren(...lines.map((line) => {
      const row = document.createElement("p");
      row.textContent = line;
      return row;
    }));
    place.screen.classList.toggle("rests", !shown.lines.length);
    for (const [name, words] of [["left", shown.left], ["right", shown.right]]) {
      place.buttons[name].textContent = words || "\u00a0";
      place.buttons[name].hidden = shown.number > 0 && !words;
      place.buttons[name].setAttribute("aria-disabled", String(!shown.number || !words));
      place.buttons[name].setAttribute("aria-label", words ? `${words}: ${shown.title}` : `No question: ${shown.title}`);
    }
  };

  const events = new EventSource("live/events");
  events.addEventListener("message", (message) => {
    const { title, devices } = JSON.parse(message.data);
    document.getElementById("title").textContent = title;
    document.title = (devices.some(({ number }) => number) ? "● " : "") + title;
    devices.forEach((shown, device) => draw(device, shown));
    const asking = devices.filter(({ number }) => number).map((shown) => shown.title);
    tell(asking.length ? `${asking.join(", ")}: look at the screen.` : "No device asks anything now.");
  });
  events.addEventListener("error", () => {
    tell("The program that showed this page does not answer.");
    // The next view, when the stream is back, is drawn whole.
    for (const place of places) {
      disable(place);
      place.shown = {};
    }
  });
})();
