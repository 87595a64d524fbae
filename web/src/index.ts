export type { components } from "./api.js";
export { call, find, SignerdError, USUAL_URL, type Answer, type Call, type Daemon } from "./call.js";
export { connect, inIndexedDb, inStorage, pair, type Granted, type Keep, type Wish } from "./pairing.js";
export { changes, signed, type Signed } from "./signing.js";
