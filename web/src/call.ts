import { CALLS, type components, type operations } from "./api.js";

/** Where signerd listens, unless its person chose another port. */
export const USUAL_URL = "http://127.0.0.1:17707";
const QUICK_SECONDS = 40;
const FIND_SECONDS = 5;
const ADDRESS = /^http:\/\/(127\.0\.0\.1|\[::1\]):\d{1,5}$/;
const ID = /^[A-Za-z0-9_-]{1,100}$/;

/** A signerd: its address, as `signerd status` tells it, and the token of the pairing. */
export interface Daemon {
  readonly url: string;
  readonly token?: string;
}

/**
 * An error: `code` is stable; `message` (a sentence) and `hint` (what to do) are for a person.
 *
 * The codes are signerd's own (`signerd explain CODE`), and "framed", "deadline-passed", "declined", "withdrawn", "expired".
 */
export class SignerdError extends Error {
  /** `retryAfter`: seconds, where signerd says how long to wait. */
  constructor(readonly code: string, sentence: string, readonly hint = "", readonly retryAfter?: number) {
    super(sentence);
    this.name = "SignerdError";
  }
}

/** The calls that an app may be granted, by operation id in signerd's OpenAPI document: all that answer with JSON. */
export type Call = Exclude<keyof typeof CALLS, "follow" | "metrics">;
type Json<Of> = Of extends { content: { "application/json": infer J } } ? J : undefined;
export type Answer<C extends Call> = operations[C]["responses"] extends { 200: infer R } ? Json<R> : undefined;
type Body<C extends Call> = operations[C] extends { requestBody: infer B } ? Json<B> : undefined;
type Part<Name extends string, Of> = [Of] extends [undefined]
  ? unknown
  : undefined extends Of ? { [_ in Name]?: Of } : { [_ in Name]: Of };
type Parts<C extends Call> = Part<"path", operations[C]["parameters"]["path"]> &
  Part<"query", operations[C]["parameters"]["query"]> & Part<"body", Body<C>>;
/** `seconds`: how long the answer may take; give more for a call that waits for a person. */
type Given<C extends Call> = Parts<C> & { signal?: AbortSignal | undefined; seconds?: number };
type Sent = { path?: object; query?: object; body?: object; headers?: Record<string, string> };

/** Makes one call to signerd. Throws SignerdError, or the reason with which `signal` was aborted. */
export async function call<C extends Call>(
  daemon: Daemon,
  name: C,
  ...[given]: {} extends Parts<C> ? [given?: Given<C>] : [given: Given<C>]
): Promise<Answer<C>> {
  const { signal, seconds = QUICK_SECONDS, ...sent } = (given ?? {}) as Sent & { signal?: AbortSignal; seconds?: number };
  const [bounded, over] = deadline(seconds, signal);
  try {
    const answer = await request(daemon, name, sent, bounded);
    return (answer.status === 204 ? undefined : await answer.json()) as Answer<C>;
  } catch (error) {
    bounded.throwIfAborted();
    if (error instanceof SignerdError) throw error;
    throw new SignerdError("daemon-failed", "signerd's answer makes no sense, or broke off.");
  } finally {
    over();
  }
}

/** Finds the first address at which a signerd answers this page. Throws as `call` does. */
export async function find(urls: readonly string[] = [USUAL_URL], signal?: AbortSignal): Promise<string> {
  const answers = async (url: string) => {
    const refused = await call({ url }, "me", { signal, seconds: FIND_SECONDS }).catch((error) => error);
    // A page whose origin is allowed may read this refusal before it is paired.
    if (refused.code === "not-paired") return url;
    throw refused;
  };
  return Promise.any(urls.map(answers)).catch((error: AggregateError) => Promise.reject(error.errors[0]));
}

/** Returns the answer before its body is read. Throws as `call` does. */
export async function request(daemon: Daemon, name: keyof typeof CALLS, sent: Sent, signal: AbortSignal): Promise<Response> {
  requireOwnWindow();
  const [method, path] = CALLS[name];
  const headers = new Headers(sent.headers);
  if (daemon.token !== undefined) headers.set("Authorization", `Bearer ${daemon.token}`);
  if (sent.body !== undefined) headers.set("Content-Type", "application/json");
  const body = sent.body === undefined ? null : JSON.stringify(sent.body);
  const url = place(daemon.url, path, sent);
  // The token is sent to signerd only.
  const bare = { credentials: "omit", redirect: "error", referrerPolicy: "no-referrer", cache: "no-store" } as const;
  const answer = await fetch(url, { method, headers, body, signal, ...bare }).catch(() => {
    signal.throwIfAborted();
    // A browser does not tell a page whether no server listens or the origin is not allowed.
    const origin = globalThis.location?.origin;
    const letIn = origin === undefined ? "." : `. Then let this site in: signerd pair --origin ${origin}`;
    throw new SignerdError("daemon-not-running", `No signerd answers at ${daemon.url}.`, `Start signerd${letIn}`);
  });
  if (answer.ok) return answer;
  const told: Partial<components["schemas"]["Problem"]> = await answer.json().catch(() => ({}));
  const wait = answer.headers.get("Retry-After");
  const sentence = told.detail?.replace(/\.?$/, ".") ?? `signerd answered with the status ${answer.status}.`;
  throw new SignerdError(told.code ?? "daemon-failed", sentence, told.hint, wait === null ? undefined : Number(wait));
}

/** A signal that also aborts at a deadline, and a function that cancels the deadline. */
function deadline(seconds: number, signal?: AbortSignal): [AbortSignal, () => void] {
  const late = new AbortController();
  const passed = () => late.abort(new SignerdError("deadline-passed", "signerd did not answer in time.", "Try again."));
  const timer = setTimeout(passed, seconds * 1000);
  return [signal ? AbortSignal.any([signal, late.signal]) : late.signal, () => clearTimeout(timer)];
}

function place(url: string, path: string, { path: ids = {}, query = {} }: Sent): string {
  if (!ADDRESS.test(url)) {
    const hint = "It is http://127.0.0.1 with a port, as `signerd status` tells it.";
    throw new SignerdError("invalid-request", `${url} is not an address of signerd.`, hint);
  }
  const filled = Object.entries(ids).reduce((text, [name, id]) => {
    if (!ID.test(id)) throw new SignerdError("invalid-request", `${name} takes only letters, digits, - and _.`);
    return text.replace(`{${name}}`, id);
  }, path);
  const asked = new URLSearchParams(Object.entries(query).map(([name, value]) => [name, String(value)]));
  return asked.size ? `${url}${filled}?${asked}` : url + filled;
}

/** Throws SignerdError inside another site's frame, where a person does not see whose page asks. */
export function requireOwnWindow(): void {
  try {
    void globalThis.top?.location.href;
  } catch {
    throw new SignerdError("framed", "This page is shown inside another site's.", "Open it in a window of its own.");
  }
}
