// What a page of another site can try of the console, by the ways of `tests/support/hostile.js`. It knows the paths, the ids,
// and even the token of the person's forms.
const attack = async (target, here, vault, token) => {
  const urlencoded = { "Content-Type": "application/x-www-form-urlencoded" };
  const plain = { "Content-Type": "text/plain" };
  const json = { "Content-Type": "application/json" };
  const attempts = readings(target, [
    "/console/", `${here}/`, `${here}/changed`, `${here}/addresses/export`, "/console/account", "/console/static/console.js",
  ]);
  const sure = { form_token: token, confirmed: "yes", key: "1" };
  for (const [path, fields] of [
    ["/console/sign-out", {}],
    ["/console/sign-in", { email: "other@example.org", password: "correct horse battery" }],
    ["/console/forgotten-password", { email: "admin@example.org" }],
    ["/console/account/name", { first_name: "Eve", surname: "Eve", phone_number: "" }],
    ["/console/account/sessions/end", {}],
    [`${here}/members/invite`, { invited_email: "eve@example.org", role_id: "1" }],
    [`${here}/addresses`, { name: "Eve", address: "bcrt1qw508d6qejxtdg4y5r3zarvary0c5xw7kygt080" }],
    [`${here}/vaults/${vault}/freeze`, { reason: "x" }],
  ]) {
    const all = { ...sure, ...fields };
    const body = new URLSearchParams(all).toString();
    const common = { method: "POST", credentials: "include", body };
    attempts[`simple form ${path}`] = () => read(target + path, { ...common, mode: "no-cors", headers: urlencoded });
    attempts[`simple text ${path}`] = () => read(target + path, { ...common, mode: "no-cors", headers: plain });
    attempts[`preflight json ${path}`] = () => read(target + path, { ...common, headers: json, body: JSON.stringify(all) });
    attempts[`preflight header ${path}`] = () =>
      read(target + path, { ...common, headers: { ...urlencoded, "HX-Request": "true", "X-HTTP-Method-Override": "POST" } });
    attempts[`form ${path}`] = () => posts(target + path, "application/x-www-form-urlencoded", all);
    attempts[`beacon ${path}`] = async () => (navigator.sendBeacon(target + path, new URLSearchParams(all)), "sent");
  }
  attempts["image"] = () => loads("img", { src: `${target}/console/static/icon.svg` });
  attempts["script"] = () => loads("script", { src: `${target}/console/static/console.js` });
  attempts["data as script"] = () => loads("script", { src: `${target}${here}/changed` });
  attempts["file as script"] = () => loads("script", { src: `${target}${here}/addresses/export` });
  attempts["style"] = () => loads("link", { rel: "stylesheet", href: `${target}/console/static/style.css` });
  attempts["frame"] = () => frames(`${target}${here}/proposals/new`);
  attempts["frame of a file"] = () => frames(`${target}/console/static/console.js`);
  attempts["events"] = () => opens(() => new EventSource(`${target}${here}/changed`, { withCredentials: true }), "onopen");
  attempts["window"] = () => peeks(`${target}${here}/`);
  attempts["service worker"] = async () => {
    await navigator.serviceWorker.register(`${target}/console/static/console.js`);
    return "registered";
  };
  attempts["null origin"] = () => sandboxed(`found = await (await fetch("${target}${here}/")).text();`);
  attempts["null origin posts"] = () =>
    sandboxed(
      `await fetch("${target}/console/sign-out", { method: "POST", mode: "no-cors", credentials: "include", ` +
        `body: new URLSearchParams({ form_token: "${token}" }) }); found = "sent";`,
    );

  return outcomes(attempts);
};
