// What a page of another site can try of the example's page, by the ways of `tests/support/hostile.js`.
const attack = (origin) => {
  const attempts = readings(origin, ["/example/", "/example/coordinator.js"]);
  attempts["its window"] = () => peeks(`${origin}/example/`);
  attempts["its storage"] = () => (localStorage.length ? `read ${localStorage.key(0)}` : "refused");
  attempts["its service worker"] = async () => {
    await navigator.serviceWorker.register(`${origin}/example/coordinator.js`);
    return "registered";
  };
  return outcomes(attempts);
};
