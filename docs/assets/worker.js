// Browsers start no worker from a file: where the site is opened from a folder, its search runs in a frame.
// Material's own shim does the same, and is loaded from a CDN.
if (location.protocol === "file:")
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.appendChild(frame);
      const inner = (this.inner = frame.contentWindow);
      const load = (source) =>
        new Promise((done, failed) => {
          const script = inner.document.createElement("script");
          Object.assign(script, { src: source, async: false, onload: done, onerror: failed });
          inner.document.body.appendChild(script);
        });
      inner.importScripts = (...sources) => Promise.all(sources.map((source) => load(new URL(source, url).href)));
      inner.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      this.ready = load(new URL(url, location.href).href);
    }
    postMessage(data) {
      this.ready.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data })));
    }
    terminate() {
      this.inner.frameElement.remove();
    }
  };
