// What a page of another site can try of the signer's page, by the ways of `tests/support/hostile.js`.
const attack = async (target, digest) => {
  const yes = JSON.stringify({ digest, acknowledged: [] });
  const form = `digest=${digest}`;
  const wish = JSON.stringify({ name: "Evil", rights: ["approve"] });
  const urlencoded = { "Content-Type": "application/x-www-form-urlencoded" };
  const plain = { "Content-Type": "text/plain" };
  const json = { "Content-Type": "application/json" };
  const attempts = readings(target, [
    "/", "/proposals/p-1", "/v1/devices", "/v1/status", "/v1/openapi.json", "/v1/events", "/static/page.js",
  ]);
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

  return outcomes(attempts);
};
