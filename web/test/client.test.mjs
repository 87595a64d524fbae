// What no browser test shows: streams that break off, silence, deadlines, refusals. The other end is a server of this process
// that answers as signerd does; the walks with a real one are in tests/web.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { call, changes, find, signed, SignerdError } from "signerd-client";

const server = createServer((asked, answer) => answers(asked, answer));
let answers;
let daemon;

before(async () => {
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  daemon = { url: `http://127.0.0.1:${server.address().port}`, token: "signerd_x" };
});
after(() => server.close() && server.closeAllConnections());

const told = (answer, body, status = 200, headers = {}) =>
  answer.writeHead(status, { "Content-Type": "application/json", ...headers }).end(JSON.stringify(body));
const streams = (answer) => answer.writeHead(200, { "Content-Type": "text/event-stream" });
const line = (number) => `id: ${number}\nevent: happened\ndata: {"number":${number}}\n\n`;
const fails = (code) => (error) => error instanceof SignerdError && error.code === code;

test("a refusal is an error with signerd's code, sentence and advice", async () => {
  const problem = { code: "too-many-requests", detail: "this app asks too often", hint: "Wait." };
  answers = (_, answer) => told(answer, problem, 429, { "Retry-After": "3" });
  const error = await call(daemon, "vaults").catch((found) => found);
  assert.deepEqual([error.code, error.message, error.hint, error.retryAfter], [problem.code, `${problem.detail}.`, "Wait.", 3]);
});

test("an answer that makes no sense, one that is late, none", async () => {
  answers = (_, answer) => answer.end("<html>");
  await assert.rejects(call(daemon, "me"), fails("daemon-failed"));
  answers = () => {};
  await assert.rejects(call(daemon, "me", { seconds: 0.02 }), fails("deadline-passed"));
  await assert.rejects(call(daemon, "me", { signal: AbortSignal.abort("enough") }), (found) => found === "enough");
  await assert.rejects(find(["http://127.0.0.1:1"]), fails("daemon-not-running"));
  answers = (_, answer) => told(answer, { code: "not-paired", detail: "no", hint: "" }, 401);
  assert.equal(await find(["http://127.0.0.1:1", daemon.url]), daemon.url);
});

test("a token goes to no other machine, and an id to no other path", async () => {
  for (const url of ["https://127.0.0.1:1", "http://127.0.0.1:1@evil.example:2", "http://localhost:1", "http://127.0.0.1:1/x"]) {
    await assert.rejects(call({ url, token: "t" }, "me"), fails("invalid-request"));
  }
  for (const psbt_id of ["..", "a/b", "", "a?b"]) {
    await assert.rejects(call(daemon, "imported_psbt", { path: { psbt_id } }), fails("invalid-request"));
  }
});

test("a stream that breaks off is taken up where it was", async () => {
  const from = [];
  answers = (asked, answer) => {
    assert.equal(asked.headers.authorization, "Bearer signerd_x");
    from.push(asked.headers["last-event-id"]);
    // In the middle of a line.
    streams(answer).write(line(from.length) + "id: 9");
    setTimeout(() => answer.destroy(), 5);
  };
  let looks = 0;
  for await (const _ of changes(daemon, "b-1")) if (++looks === 4) break;
  assert.deepEqual(from, [undefined, "1"]);
});

test("signerd that stays away is waited for so long, and an abort ends the wait at once", async () => {
  answers = (_, answer) => answer.destroy();
  const never = async (given) => { for await (const _ of changes(daemon, "b-1", given)); };
  await assert.rejects(never({ patience: 20 }), fails("daemon-not-running"));
  answers = (_, answer) => streams(answer).flushHeaders();
  await assert.rejects(never({ signal: AbortSignal.timeout(20) }), { name: "TimeoutError" });
  answers = (_, answer) => told(answer, { code: "not-paired", detail: "no", hint: "" }, 401);
  await assert.rejects(never({}), fails("not-paired"));
});

test("a PSBT that is imported is waited for until it is signed, or the person says no", async () => {
  let state = "waiting-for-person";
  answers = (asked, answer) => {
    if (asked.url.startsWith("/v1/events")) {
      streams(answer).flushHeaders();
      if (state === "waiting-for-person") setTimeout(() => ((state = "declined"), answer.write(line(1))), 5);
    } else {
      told(answer, { psbt_id: "b-1", state, reason: "too dear", signed_psbt: state === "handed-over" ? "cHNidA==" : null });
    }
  };
  const no = await signed(daemon, "cHNidA==").catch((found) => found);
  assert.deepEqual([no.code, no.hint], ["declined", "too dear"]);
  state = "handed-over";
  assert.equal((await signed(daemon, "cHNidA==")).signed_psbt, "cHNidA==");
});
