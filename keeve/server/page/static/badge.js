// The badge: this browser itself checks what the server shows, as far as it can be checked, and says how far that is.
//   Chain: each record names the hash of the one before it, up to the one that the page is of; what the page shows was
//     stated by these records, and nothing that they state of its turns is left out. The newest records are looked at,
//     and on demand all; the newest one is remembered, and has to be there the next time.
//   Checkpoint: the newest of them is in a log that the log's key has signed, and that goes on from what this browser
//     has seen of it before (it remembers the key, and the newest checkpoint).
// The one rule: green is what was checked here. What could not be is said, and is not green.

import * as memory from "./memory.js";
import * as proofs from "./proofs.js";
import { inPath } from "./said.js";
import { held } from "./shown.js";
import { contentOf, decoded } from "./values.js";

const { Broken } = proofs;
const MOST = 2000; // records that are looked at unasked, besides those of what is shown
const badge = document.getElementById("badge");
const api = `/api/v1/sessions/${inPath(badge.dataset.session)}`;
const upto = Number(badge.dataset.seq);
const live = badge.dataset.live !== undefined; // the page is of the newest record
const talks = document.getElementById("turns") !== null;
const MARKS = { good: "✓", warn: "!", bad: "✗", none: "–", busy: "…" };
const NAMES = { chain: "Chain", checkpoint: "Checkpoint" };
const DAMAGE = ["session_damaged", "log_tampered", "log_truncated", "not_covered", "store_damaged", "log_corrupt"];

async function ask(address) {
  const answer = await fetch(address);
  const said = await answer.json();
  if (answer.ok) return said;
  throw DAMAGE.includes(said.error.code) ? new Broken(said.error.message) : new Error(said.error.message);
}

function show(which, state, words) {
  const line = document.getElementById(`badge-${which}`);
  line.dataset.state = state;
  const text = `${MARKS[state]} ${NAMES[which]}: ${words}`;
  if (line.textContent !== text) line.textContent = text;
}

function failed(which, error) {
  if (error instanceof Broken) show(which, "bad", error.message);
  else show(which, "none", `could not be checked (${error.message})`);
}

// A button of the badge is there as long as there is something for it to do.
function offer(name, does) {
  const button = document.getElementById(name);
  button.hidden = does === null;
  button.onclick = does;
}

// The chain, and what its records state.

const seqs = [...document.querySelectorAll("#turns .entry[data-seq]")].map((each) => Number(each.dataset.seq));
const firstShown = Math.min(...seqs, upto + 1);
const stated = new Map();
let chain = null;
let whole = false;

// From the first record that is shown on, or some before it; or from the one that is remembered, unless it is far back.
function begun() {
  const before = memory.chain(badge.dataset.session);
  const near = before && before.seq <= upto && upto - before.seq < 5 * MOST ? before.seq : upto + 1;
  return new proofs.Chain(Math.max(1, Math.min(firstShown, upto - MOST + 1, near)));
}

async function readOn(chain, last, words) {
  while (chain.seq < last) {
    const worded = words && chain.seq + 100 >= firstShown;
    const limit = Math.min(worded ? 100 : 1000, words && !worded ? firstShown - 1 - chain.seq : 1000, last - chain.seq);
    const page = await ask(`${api}/chain?after=${chain.seq}&limit=${limit}&words=${worded}`);
    for (const record of page.records) {
      const header = proofs.bytesOf(record.header);
      await chain.add(record.seq, header);
      if (record.words) stated.set(record.seq, await statementsOf(record.seq, header, record.words));
    }
    if (page.next === null) return;
  }
}

async function statementsOf(seq, header, words) {
  const { facts, cells } = await proofs.statedBy(header, words);
  if (!facts.length) return [];
  const cell = (of, number) => {
    if (of !== seq) throw new Broken(`record ${seq} names a text of another record`);
    return cells.has(number) ? contentOf(cells.get(number)) : { $erased: true };
  };
  const { value, odd } = decoded(facts, cell);
  const [statements, numbers, digests] = value;
  await proofs.checkCells(cells, numbers, proofs.bytesOf(digests.$bytes));
  // Those of three items take something back.
  return statements.filter((each) => each.length === 4).map(([, label, fields, said]) => ({ label, fields, said, odd }));
}

// What this browser has seen of the session has to be in it.
function remember() {
  const before = memory.chain(badge.dataset.session);
  if (before && before.uid === chain.uid) {
    if (live && before.seq > chain.seq) throw new Broken(`this browser has seen record ${before.seq} of it, and there are ${chain.seq}`);
    const now = chain.hashes.get(before.seq);
    if (now !== undefined && now !== before.hash) throw new Broken(`record ${before.seq} is another than this browser has seen`);
    whole ||= before.whole && now !== undefined;
  }
  whole ||= chain.first === 1;
  if (live) memory.keepChain(badge.dataset.session, { uid: chain.uid, seq: chain.seq, hash: chain.hashes.get(chain.seq), whole });
}

const looked = () => document.hidden && new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));

async function checkChain() {
  chain ??= begun();
  await readOn(chain, live ? Infinity : upto, talks);
  if (chain.seq < upto || chain.hashes.get(upto) !== badge.dataset.hash) {
    throw new Broken(`record ${upto} is not the one that the page is of`);
  }
  if (talks) {
    // What has come since may not be shown yet, and is not as long as nobody looks at the page.
    for (let tries = 0, missing = held(stated, chain.seq, live); missing; tries += 1, missing = held(stated, chain.seq, live)) {
      if (!live || tries === 5) throw new Broken(`what was said at seq ${missing} is not shown as it was`);
      await looked();
      await new Promise((done) => setTimeout(done, 1000));
    }
  }
  remember();
  const records = whole ? (chain.seq === 1 ? "its first record" : `all ${chain.seq} records`) : `records ${chain.first} to ${chain.seq}`;
  const rest = whole ? "" : "; those before were not looked at";
  show("chain", "good", `${records}${chain.seq === 1 ? "" : ", each names the one before it"}${talks ? ", and what is shown was said in them" : ""}${rest}`);
  offer("check-all", whole ? null : checkAll);
}

async function checkAll() {
  offer("check-all", null);
  try {
    const past = new proofs.Chain();
    for (let last = 0; last < chain.first - 1; ) {
      last = Math.min(last + 10000, chain.first - 1);
      show("chain", "busy", `being checked, up to record ${last} of ${chain.seq}`);
      await readOn(past, last, false);
      if (past.seq < last) throw new Broken(`record ${past.seq + 1} is missing`);
    }
    const before = memory.chain(badge.dataset.session);
    const seen = before?.uid === chain.uid && past.hashes.get(before.seq);
    if (seen && seen !== before.hash) throw new Broken(`record ${before.seq} is another than this browser has seen`);
    if (!proofs.same(past.hash, chain.before)) throw new Broken(`record ${chain.first} does not name the one before it`);
    whole = true;
    await checkChain();
  } catch (error) {
    failed("chain", error);
  }
}

// The checkpoint.

async function checkCheckpoint() {
  const texts = (await ask("/api/v1/keys")).keys;
  const keys = await Promise.all(texts.map(proofs.keyOf));
  const found = await ask(`${api}/receipts/${chain.seq}`);
  let now = await proofs.checkReceipt(found.receipt, chain.header, keys);
  const before = memory.log(now.origin);
  let [state, seen] = ["good", "this browser sees its key for the first time, and remembers it"];
  const keep = () => memory.keepLog(now.origin, { keys: texts, size: now.size, root: btoa(String.fromCharCode(...now.root)) });
  if (before) {
    if (!texts.some((text) => before.keys.includes(text))) throw new Broken("the log has another key than before");
    const old = { size: before.size, root: proofs.bytesOf(before.root) };
    // Both the older one and the receipt's have to be beginnings of the newest.
    const size = now.size;
    for (const one of [old, now]) {
      if (one.size > size) throw new Broken(`the log has ${size} records, and had ${one.size}`);
      const { extension } = await ask(`/api/v1/checkpoint?since=${one.size}`);
      now = await proofs.checkExtension(extension, one, keys);
    }
    seen = "it goes on from what this browser has seen of it";
    if (!before.keys.includes(now.key.text)) [state, seen] = ["warn", "it has a new key, and whether its former one vouches for that was not checked here"];
  } else if (memory.logs()) {
    [state, seen] = ["warn", "at this address there was another log before"];
  }
  if (state === "good") keep();
  show("checkpoint", state, `record ${chain.seq} is in a log of ${now.size} that the key ${now.key.id} has signed; ${seen}`);
  offer("accept-log", state === "good" ? null : () => (keep(), offer("accept-log", null), check()));
}

async function check() {
  if (chain === null) show("chain", "busy", "being checked");
  try {
    if (!globalThis.crypto?.subtle) throw new Error("browsers hash for pages with TLS, and of this machine, alone");
    await checkChain();
  } catch (error) {
    failed("chain", error);
    show("checkpoint", "none", "not looked at, without a chain");
    return;
  }
  try {
    if (badge.dataset.signs !== undefined) await checkCheckpoint();
    else if (memory.logs()) show("checkpoint", "warn", "none, this server does not sign, and one at this address did before");
    else show("checkpoint", "none", "none, this server does not sign");
  } catch (error) {
    if (error.name === "NotSupportedError") show("checkpoint", "none", "could not be checked (this browser has no Ed25519)");
    else failed("checkpoint", error);
  }
}

// Once at the beginning; and again when something has come, a moment after the last of it.
let checking = check();
let later = 0;
document.addEventListener("stated", () => {
  clearTimeout(later);
  later = setTimeout(() => {
    checking = checking.then(() => document.getElementById("badge-chain").dataset.state !== "bad" && check());
  }, 1000);
});
