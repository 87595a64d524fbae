// An example: a coordinator of a 2-of-3 vault that uses signerd's client and nothing else.
import { call, connect, inStorage, signed, SignerdError } from "../dist/index.js";

const WISH = { name: "Coordinator", rights: ["read", "xpub", "propose"] };
const ADDRESSES = 5;
const MAGIC = [0x70, 0x73, 0x62, 0x74, 0xff];

const at = (id) => document.getElementById(id);
const say = (text) => (at("said").textContent = text);
// Names and sentences come from others: as text, never as markup.
const element = (tag, text) => Object.assign(document.createElement(tag), { textContent: text });
// What a button or a form does; what goes wrong is told with what to do about it.
const on = (id, event, act) =>
  at(id).addEventListener(event, async (happened) => {
    happened.preventDefault();
    try {
      await act(happened);
    } catch (error) {
      say(error instanceof SignerdError ? `${error.message} ${error.hint}` : error.message);
    }
  });

// Each with its daemon, the fingerprint and the keys of its registered device, and the vaults that its person pinned.
const signers = [];

on("signer", "submit", async (event) => {
  const url = new FormData(event.target).get("url").replace(/\/$/, "");
  if (signers.some((one) => one.daemon.url === url)) throw new Error("This signer is here already.");
  const show = (code) => say(`Type this in the signerd at ${url}: ${code}`);
  const daemon = await connect(inStorage("localStorage", url), WISH, show, { urls: [url] });
  const [vaults, { fingerprint, keys }, devices] = await Promise.all([
    call(daemon, "vaults"),
    call(daemon, "accounts"),
    call(daemon, "devices"),
  ]);
  const device = devices.find((one) => one.fingerprint === fingerprint)?.model ?? "no device connected";
  const name = `${fingerprint} (${device})`;
  signers.push({ daemon, name, fingerprint, xpubs: keys.map((key) => key.xpub), vaults: vaults.filter((one) => one.pinned) });
  at("signers").append(element("li", `${name}, ${url}`));
  say(`${name} is here.`);
  list();
  await show_vault();
});

// Those that every signer here has pinned, as the very same descriptor, and in which each has a key of their device.
const shared = () =>
  (signers[0]?.vaults ?? []).filter(({ descriptor }) =>
    signers.every(
      (one) => one.vaults.some((vault) => vault.descriptor === descriptor) && one.xpubs.some((xpub) => descriptor.includes(xpub)),
    ),
  );
const chosen = () => shared().find((vault) => vault.descriptor === at("vault").value);

function list() {
  const options = shared().map((vault) => {
    const option = element("option", `${vault.name}: ${vault.threshold} of ${vault.signers}, ${vault.network}`);
    return Object.assign(option, { value: vault.descriptor });
  });
  at("vault").replaceChildren(...options);
}

async function show_vault() {
  const vault = chosen();
  at("descriptor").value = vault?.descriptor ?? "";
  at("addresses").replaceChildren();
  if (!vault) throw new Error("The signers here have no vault in common: each pins it first (signerd pin).");
  const pages = await Promise.all(
    signers.map(({ daemon, vaults }) => {
      const { vault_id } = vaults.find((one) => one.descriptor === vault.descriptor);
      return call(daemon, "vault_addresses", { path: { vault_id }, query: { count: ADDRESSES } });
    }),
  );
  const [first, ...others] = pages.map((page) => page.addresses.map((one) => one.address).join("\n"));
  const fault = pages.find((page) => page.fault)?.fault;
  if (fault || others.some((one) => one !== first)) throw new Error(fault ?? "The signers do not show the same addresses.");
  at("addresses").replaceChildren(...first.split("\n").map((address) => element("li", address)));
}
on("vault", "change", show_vault);

let reading;
on("file", "change", () => (reading = read_file()));
async function read_file() {
  const bytes = new Uint8Array(await at("file").files[0].arrayBuffer());
  const isBinary = MAGIC.every((byte, index) => bytes[index] === byte);
  at("psbt").value = isBinary ? btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")) : new TextDecoder().decode(bytes);
}

async function psbt() {
  await Promise.allSettled([reading]);
  return at("psbt").value.replace(/\s/g, "");
}

const moneyLines = (money) => {
  if (!money) return ["Where its money goes is not known."];
  if (money.proof) return [`It moves no money. ${money.proof.sentence}`, money.proof.message];
  return [
    ...money.payments.map((one) => `${one.amount_sats} sats to ${one.address ?? one.script}`),
    `${money.change_sats} sats come back`,
    `${money.fee_sats} sats of fee`,
  ];
};

on("look", "click", async () => {
  if (!signers.length) throw new Error("Add a signer first.");
  const review = await call(signers[0].daemon, "inspect_psbt", { body: { psbt: await psbt() } });
  const lines = [
    ...moneyLines(review.money),
    ...review.checks.filter((check) => check.outcome !== "allow").map((check) => check.sentence),
  ];
  at("money").replaceChildren(...lines.map((line) => element("li", line)));
  if (!review.allowed) throw new Error("signerd does not sign this.");
  say("Compare it, then ask the signers.");
  const buttons = signers.map((one, number) => Object.assign(element("button", `Ask ${one.name}`), { id: `ask-${number}` }));
  at("ask").replaceChildren(...buttons);
  signers.forEach((one, number) => on(`ask-${number}`, "click", () => ask(one)));
});

// Each signer gets what those before have signed, and adds a signature.
async function ask(signer) {
  say(`${signer.name} looks at it in signerd, and confirms it on the device.`);
  const answer = await signed(signer.daemon, await psbt(), { version: "2" });
  at("psbt").value = answer.signed_psbt;
  const bytes = Uint8Array.from(atob(answer.signed_psbt), (one) => one.charCodeAt(0));
  Object.assign(at("save"), { href: URL.createObjectURL(new Blob([bytes])), hidden: false });
  at("final").value = answer.final ?? "";
  say(answer.final ? "Complete. Send the transaction with a node of yours." : `${signer.name} has signed. Ask the next one.`);
}
