// A real OpenID provider on loopback, for one test: panva's oidc-provider with its own forms, which let anybody in
// by the name that they type. What it is to know comes as JSON on the standard input; it ends with that.
import { createServer } from 'node:https';
import { createInterface } from 'node:readline';
import { Provider } from 'oidc-provider';

const lines = createInterface({ input: process.stdin });
lines.once('line', (line) => {
  const { key, certificate, client, redirectUri } = JSON.parse(line);
  const server = createServer({ key, cert: certificate });
  server.listen(0, '127.0.0.1', () => {
    const issuer = `https://localhost:${server.address().port}`;
    const provider = new Provider(issuer, {
      clients: [{ client_id: client.id, client_secret: client.secret, redirect_uris: [redirectUri] }],
      cookies: { keys: ['of one test'] },
      findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
      pkce: { required: () => true },
    });
    server.on('request', provider.callback());
    console.log(issuer);
  });
});
lines.on('close', () => process.exit(0));
