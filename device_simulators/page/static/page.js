// The story, the screens as they change, and the buttons. All of it is text, and never markup.
"use strict";

(() => {
  const ENDED = {
    approved: "Approved.", refused: "Refused.", withdrawn: "The question was withdrawn.",
    unplugged: "Unplugged.", locked: "Locked.",
  };
  const at = (id) => document.getElementById(id);
  const places = [];
  let told = "";
  let over = false;

  const say = (words) => {
    if (at("state").textContent !== words) at("state").textContent = words;
  };

  const element = (name, words) => Object.assign(document.createElement(name), { textContent: words });

  const send = async (event, body) => {
    const button = event.currentTarget;
    if (button.type === "button") return;
    disable(button.parentElement.children);
    const answer = await fetch("live/press", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(body),
    }).catch(() => null);
    if (!answer?.ok) say(answer ? await answer.text() : "The program that showed this page has ended.");
  };

  const disable = (buttons) => {
    for (const button of buttons) enable(button, 0);
  };

  // One that answers question `number` is of the kind that press.js guards; the value makes it another button for each question.
  const enable = (button, number) => {
    button.type = number ? "submit" : "button";
    button.value = number;
    if (number) button.removeAttribute("aria-disabled");
    else button.setAttribute("aria-disabled", "true");
  };

  const added = (device) => {
    const section = at("device").content.firstElementChild.cloneNode(true);
    section.querySelector("h2").id = `device-${device}`;
    section.setAttribute("aria-labelledby", `device-${device}`);
    const buttons = { left: section.querySelector(".left"), right: section.querySelector(".right") };
    // The button that has the focus stays where it is: a screen that changes does not move the focus.
    for (const [button, element] of Object.entries(buttons)) {
      element.addEventListener("click", (event) => send(event, { device, number: places[device].shown.number, button }));
    }
    at("devices").append(section);
    return { section, buttons, screen: section.querySelector(".screen"), shown: {} };
  };

  const draw = (device, shown) => {
    const place = (places[device] ??= added(device));
    if (JSON.stringify(place.shown) === JSON.stringify(shown)) return;
    place.shown = shown;
    place.section.querySelector("h2").textContent = shown.title;
    place.section.querySelector(".about").textContent = shown.about;
    place.section.classList.toggle("waits", shown.number > 0);
    place.screen.setAttribute("aria-label", `Screen of ${shown.title}`);
    const lines = shown.lines.length ? shown.lines : [ENDED[shown.ended] ?? "Ready."];
    place.screen.replaceChildren(...lines.map((line) => element("p", line)));
    place.screen.classList.toggle("rests", !shown.lines.length);
    for (const [name, words] of [["left", shown.left], ["right", shown.yes]]) {
      place.buttons[name].textContent = words || "\u00a0";
      place.buttons[name].hidden = shown.number > 0 && !words;
      enable(place.buttons[name], words && shown.number);
      place.buttons[name].setAttribute("aria-label", words ? `${words}: ${shown.title}` : `No question: ${shown.title}`);
    }
  };

  const link = (words, number) => {
    const made = Object.assign(element("a", words), { href: `link/${number}`, target: "_blank", rel: "noopener" });
    const row = document.createElement("span");
    row.append(made);
    return row;
  };

  const tell = (story) => {
    if (told === JSON.stringify(story)) return;
    const before = told && JSON.parse(told);
    told = JSON.stringify(story);
    const { steps, step, question, answers, number } = story;
    const now = at("now");
    at("steps").hidden = now.hidden = at("links").hidden = !steps.length;
    over = step > steps.length;
    at("count").textContent = over ? "The end" : `Step ${step} of ${steps.length}`;
    const [title, why] = over ? story.end : steps[step - 1] ?? ["", ""];
    at("step").textContent = title;
    at("why").textContent = why;
    at("log").replaceChildren(...story.log.map((line) => element("p", line)));
    at("asks").hidden = !number;
    if (number && number !== before?.number) {
      at("question").textContent = question;
      at("shown").textContent = story.shown;
      // The answer that goes on is the first, and stands right, as on the devices.
      at("answers").replaceChildren(...answers.toReversed().map((words) => {
        const button = Object.assign(element("button", words), { className: words === answers[0] ? "right" : "left" });
        enable(button, number);
        button.addEventListener("click", (event) => send(event, { question: number, answer: words }));
        return button;
      }));
    }
    if (JSON.stringify(story.links) !== JSON.stringify(before?.links)) at("links").replaceChildren(...story.links.map(link));
    at("steps").firstElementChild.replaceChildren(...steps.map(([name, reason], place) => {
      const row = document.createElement("li");
      row.className = place + 1 < step ? "done" : place + 1 === step ? "current" : "";
      if (place + 1 === step) row.setAttribute("aria-current", "step");
      row.append(element("strong", name));
      if (place + 1 < step) row.append(element("span", reason));
      return row;
    }));
  };

  const events = new EventSource("live/events");
  events.addEventListener("message", (message) => {
    const { title, story, devices } = JSON.parse(message.data);
    at("title").textContent = title;
    tell(story);
    // What was approved before is no answer to the question that is open.
    devices.forEach((shown, device) => draw(device, story.number ? { ...shown, ended: "" } : shown));
    const asking = devices.filter(({ number }) => number).map((shown) => shown.title);
    document.title = (asking.length || story.number ? "● " : "") + title;
    if (asking.length) say(`${asking.join(", ")}: look at the screen.`);
    else say(story.number ? "A question waits for your answer." : "No device asks anything now.");
  });
  events.addEventListener("error", () => {
    say(over ? "The demo is over, and nothing of it runs any more. You can close this page."
      : "The program that showed this page does not answer. Start it again in the terminal.");
    at("now").hidden = at("links").hidden = over;
    // The next view, when the stream is back, is drawn whole.
    disable(document.querySelectorAll("button"));
    for (const place of places) place.shown = {};
    told = "";
  });
})();
