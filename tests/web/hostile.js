// What a page of another site can try of the example's page, by the ways of `tests/support/hostile.js`.
const attack = (origin) => {
  const attempts = readings(origin, ["/example/", "/example/coordinator.js"]);
  attempts["its window"] = () => peeks(`${origin}/example/`);
  return outcomes(attempts);
};
