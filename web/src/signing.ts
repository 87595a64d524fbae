import { call, request, SignerdError, type Answer, type Daemon } from "./call.js";
import { pause } from "./pairing.js";

// signerd sends a heartbeat every 15 seconds.
const SILENCE_MS = 40_000;
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 15_000;
const BROKEN = new Set(["daemon-not-running", "daemon-failed", "deadline-passed"]);
// Why an imported PSBT is not signed, by its state.
const OVER = new Map([
  ["declined", "The person said no."],
  ["refused", "A check or a limit of signerd's refuses it now."],
  ["withdrawn", "It was taken back."],
  ["expired", "The person did not decide within a day."],
]);

/** An imported PSBT with this person's signatures. `final`: the complete transaction in hex, if they are enough. */
export type Signed = Answer<"imported_psbt"> & { signed_psbt: string };
/** `patience`: how long signerd may be unreachable, in milliseconds. */
type Waiting = { signal?: AbortSignal | undefined; patience?: number };

/**
 * Imports a PSBT (base64, version 0 or 2), waits for the person and their device, and returns it in `version`. signerd
 * asks about a transaction once, for a day at most: give a `signal` to wait less.
 *
 * Throws SignerdError: "declined", "refused", "withdrawn" or "expired", and as `call` and `changes`.
 */
export async function signed(
  daemon: Daemon,
  psbt: string,
  { version = "2", ...waiting }: Waiting & { version?: "0" | "2" } = {},
): Promise<Signed> {
  const { signal } = waiting;
  const { psbt_id } = await call(daemon, "import_psbt", { body: { psbt }, signal });
  for await (const _ of changes(daemon, psbt_id, waiting)) {
    const found = await call(daemon, "imported_psbt", { path: { psbt_id }, query: { version }, signal });
    if (found.signed_psbt !== null) return found as Signed;
    const why = OVER.get(found.state);
    if (why !== undefined) throw new SignerdError(found.state, why, found.reason);
  }
  throw new SignerdError("daemon-failed", "signerd's events ended.");
}

/**
 * Yields when the state of `subject` (the id of a PSBT, proposal, vault or device) is to be read: now, after each event
 * about it, and when signerd is back; without end. Events from before a restart are lost.
 *
 * Throws SignerdError if signerd is unreachable for `patience`, or the reason with which `signal` was aborted.
 */
export async function* changes(
  daemon: Daemon,
  subject: string,
  { signal, patience = 300_000 }: Waiting = {},
): AsyncGenerator<void> {
  const headers: Record<string, string> = {};
  for (let [waited, next] = [0, FIRST_PAUSE_MS]; ; ) {
    let trouble = new SignerdError("daemon-not-running", "signerd stopped, and was not started again.");
    try {
      for await (const line of follow(daemon, subject, headers, signal)) {
        [waited, next] = [0, FIRST_PAUSE_MS];
        if (line.startsWith("id: ")) headers["Last-Event-ID"] = line.slice(4);
        if (line === BEGUN || line.startsWith("data: ")) yield;
      }
    } catch (error) {
      signal?.throwIfAborted();
      if (!(error instanceof SignerdError) || !BROKEN.has(error.code)) throw error;
      trouble = error;
    }
    if (waited >= patience) throw trouble;
    const now = Math.min(next, patience - waited);
    [waited, next] = [waited + now, Math.min(2 * next, LONGEST_PAUSE_MS)];
    await pause(now, signal);
  }
}

const BEGUN = ": begun";

/** `BEGUN`, then the lines of one stream until it ends. Throws SignerdError if it breaks off or is silent. */
async function* follow(daemon: Daemon, subject: string, headers: Record<string, string>, signal?: AbortSignal) {
  const left = new AbortController();
  const silent = () => left.abort(new SignerdError("deadline-passed", "signerd's events are silent."));
  const bounded = signal ? AbortSignal.any([signal, left.signal]) : left.signal;
  let timer = setTimeout(silent, SILENCE_MS);
  try {
    const answer = await request(daemon, "follow", { query: { subject }, headers }, bounded);
    yield BEGUN;
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ; ) {
      clearTimeout(timer);
      timer = setTimeout(silent, SILENCE_MS);
      const { done, value } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n");
      rest = parts.pop()!;
      yield* parts;
    }
  } catch (error) {
    bounded.throwIfAborted();
    throw error instanceof SignerdError ? error : new SignerdError("daemon-failed", "signerd's events broke off.");
  } finally {
    clearTimeout(timer);
    left.abort();
  }
}
