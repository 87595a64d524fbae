import type { components } from "./api.js";
import { call, find, requireOwnWindow, SignerdError, type Daemon } from "./call.js";

const ASK_AGAIN_MS = 1000;

/** What an app asks for. `name`: up to 40 characters, shown to the person. */
export type Wish = components["schemas"]["PairingRequest"];

/** A pairing: what `call` takes. `rights` may be fewer than were asked for; `expires` is RFC 3339, UTC. */
export interface Granted extends Daemon {
  readonly token: string;
  readonly appId: string;
  readonly rights: readonly string[];
  readonly expires: string;
}

/** Shows the person the code, which they type in signerd within so many seconds. */
export type Show = (code: string, seconds: number) => void;

/** Where an app stores its pairing. Every script of the page's origin can read what the browser stores. */
export interface Keep {
  load(): Promise<Granted | undefined>;
  store(granted: Granted): Promise<unknown>;
  forget(): Promise<unknown>;
}

/** `localStorage` keeps a pairing until it ends, `sessionStorage` until the tab is closed. */
export function inStorage(kind: "localStorage" | "sessionStorage", name = "signerd"): Keep {
  return {
    load: async () => JSON.parse(globalThis[kind].getItem(name) ?? "null") ?? undefined,
    store: async (granted) => globalThis[kind].setItem(name, JSON.stringify(granted)),
    forget: async () => globalThis[kind].removeItem(name),
  };
}

/** Like `localStorage`, also for workers. */
export function inIndexedDb(name = "signerd"): Keep {
  const done = <T>(asked: IDBRequest<T>) =>
    new Promise<T>((resolve, reject) => {
      asked.onsuccess = () => resolve(asked.result);
      asked.onerror = () => reject(asked.error);
    });
  const within = async <T>(mode: IDBTransactionMode, use: (store: IDBObjectStore) => IDBRequest<T>): Promise<T> => {
    const opening = indexedDB.open(name, 1);
    opening.onupgradeneeded = () => opening.result.createObjectStore("kept");
    const database = await done(opening);
    return done(use(database.transaction("kept", mode).objectStore("kept"))).finally(() => database.close());
  };
  return {
    load: () => within<Granted | undefined>("readonly", (store) => store.get("pairing")),
    store: (granted) => within("readwrite", (store) => store.put(granted, "pairing")),
    forget: () => within("readwrite", (store) => store.delete("pairing")),
  };
}

/**
 * Asks to be paired, and waits for the person's answer.
 *
 * Throws SignerdError: "not-allowed" if the person refuses, "unknown-pairing" if no answer comes in time, and as `call`.
 */
export async function pair(url: string, wish: Wish, show: Show, signal?: AbortSignal): Promise<Granted> {
  const asked = await call({ url }, "ask", { body: wish, signal });
  show(asked.code, asked.seconds);
  const given = { path: { pairing_id: asked.id }, body: { secret: asked.secret }, signal };
  for (;;) {
    const found = await call({ url }, "collect", given);
    if (found.state === "refused") throw new SignerdError("not-allowed", "The person did not let this app in.");
    if (found.state === "accepted") {
      return { url, token: found.token!, appId: found.app_id!, rights: found.rights, expires: found.expires! };
    }
    await pause(ASK_AGAIN_MS, signal);
  }
}

/** Returns the stored pairing if it is valid, else makes and stores a new one. Throws as `find` and `pair` do. */
export async function connect(
  keep: Keep,
  wish: Wish,
  show: Show,
  { urls, signal }: { urls?: readonly string[]; signal?: AbortSignal } = {},
): Promise<Granted> {
  // First: a browser may refuse its storage to a frame.
  requireOwnWindow();
  const known = await keep.load();
  try {
    if (known) return await call(known, "me", { signal }).then(() => known);
  } catch (error) {
    if (!(error instanceof SignerdError) || error.code !== "not-paired") throw error;
    await keep.forget();
  }
  const granted = await pair(await find(urls, signal), wish, show, signal);
  await keep.store(granted);
  return granted;
}

/** Throws the reason with which `signal` was aborted. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = () => (clearTimeout(timer), reject(signal!.reason));
    const timer = setTimeout(() => (signal?.removeEventListener("abort", stop), resolve()), ms);
    signal?.addEventListener("abort", stop, { once: true });
    if (signal?.aborted) stop();
  });
}
