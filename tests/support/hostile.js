// Ways of a page of another site. Each attempt answers "refused", "opaque" (sent, nothing readable), "sent" (a form), "late"
// (undecided, which is a fault of the test), or what it got.
const PATIENCE_MS = 60000;

const late = (promise) =>
  Promise.race([promise, new Promise((done) => setTimeout(() => done("late"), PATIENCE_MS))]);

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

// Firefox tells of no load where it shows an error of its own: from then on the frame cannot be seen into.
const whenShown = (frame, look) => {
  frame.onload = look;
  const watch = setInterval(() => {
    if (frame.contentDocument !== null) return;
    clearInterval(watch);
    setTimeout(look, 1000);
  }, 50);
};

// What a frame of another origin shows, or an error of the browser's own, only the test can see: by the frame's name.
const frames = (url) =>
  new Promise((done) => {
    const frame = document.createElement("iframe");
    frame.name = `frame-${document.querySelectorAll("iframe").length}`;
    whenShown(frame, () => {
      try {
        const text = frame.contentDocument.body.innerText;
        done(text ? `read ${text.slice(0, 80)}` : "refused");
      } catch {
        done(frame.name);
      }
    });
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
    whenShown(frame, () => {
      try {
        const text = frame.contentDocument.body.innerText;
        done(text ? `read ${JSON.parse(text).status}` : "sent");
      } catch {
        done("sent");
      }
    });
    form.submit();
  });

const opens = (make, opened) =>
  new Promise((done) => {
    const one = make();
    one[opened] = () => done("opened");
    one.onmessage = (event) => done(`read ${event.data}`);
    one.onerror = () => done("refused");
  });

// A frame without an origin of its own: what it sends says "Origin: null". Where the page's policy stops its script, it says
// nothing at all.
const sandboxed = (script) =>
  new Promise((done) => {
    const frame = document.createElement("iframe");
    frame.setAttribute("sandbox", "allow-scripts allow-forms");
    let runs = false;
    window.addEventListener("message", (event) => {
      if (event.source !== frame.contentWindow) return;
      if (event.data !== "runs") done(event.data);
      runs = true;
    });
    frame.onload = () => setTimeout(() => runs || done("refused"), 2000);
    frame.srcdoc = `<script>parent.postMessage("runs", "*"); (async () => { let found; try { ${script} } catch { found = "refused"; } parent.postMessage(found, "*"); })()<\/script>`;
    document.body.append(frame);
  });

const peeks = async (url) => {
  const other = window.open(url);
  if (other === null) return "refused";
  try {
    // Empty and ours until the other page has come.
    while (!other.closed) {
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

// By the name of each attempt: what came of it. On another site also of a page that lets itself be framed, which is seen.
const outcomes = async (given) => {
  const other = location.hostname === "localhost" ? "127.0.0.1" : "localhost";
  const framable = () => frames(`http://${other}:${location.port}/`);
  const attempts = document.title === "Another site" ? { ...given, "a page that may be framed": framable } : given;
  const names = Object.keys(attempts);
  const results = await Promise.all(
    names.map((name) => late((async () => attempts[name]())().catch(() => "refused"))),
  );
  return Object.fromEntries(names.map((name, index) => [name, results[index]]));
};

// What is tried of a page or an answer, whatever it is.
const readings = (target, paths) => {
  const attempts = {};
  for (const path of paths) {
    for (const credentials of ["include", "omit"]) {
      attempts[`fetch ${path} ${credentials}`] = () => read(target + path, { credentials });
    }
    attempts[`no-cors ${path}`] = () => read(target + path, { mode: "no-cors", credentials: "include" });
    attempts[`cached ${path}`] = () => read(target + path, { cache: "force-cache", credentials: "include" });
    attempts[`from the cache alone ${path}`] = () => read(target + path, { cache: "only-if-cached", mode: "same-origin" });
  }
  return attempts;
};
