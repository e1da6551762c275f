// The badge: this browser itself checks what the server shows, as far as it can be checked, and says how far that is.
//   Chain: each record names the hash of the one before it, up to the one that the page is of; what the page shows was
//     stated by these records, and nothing that they state of its turns is left out.
//   Checkpoint: the newest of them is in a log that the log's key has signed, and that goes on from what this browser
//     has seen of it before (it remembers the key, and the newest checkpoint).
// The one rule: green is what was checked here. What could not be is said, and is not green.

import * as proofs from "./proofs.js";
import { inWords } from "./said.js";
import { contentOf, decoded } from "./values.js";

const { Broken } = proofs;
const badge = document.getElementById("badge");
const api = `/api/v1/sessions/${encodeURIComponent(badge.dataset.session)}`;
const upto = Number(badge.dataset.seq);
const live = badge.dataset.live !== undefined;
const REMEMBERED = "keeve.log";
const MARKS = { good: "✓", warn: "!", bad: "✗", none: "–", busy: "…" };
const DAMAGE = ["session_damaged", "log_tampered", "log_truncated", "not_covered", "store_damaged"];

class Unasked extends Error {}

async function ask(address) {
  const answer = await fetch(address);
  const said = await answer.json();
  if (answer.ok) return said;
  if (DAMAGE.includes(said.error.code)) throw new Broken(said.error.message);
  const error = new Unasked(said.error.message);
  error.code = said.error.code;
  throw error;
}

function show(which, state, words) {
  const line = document.getElementById(`badge-${which}`);
  line.dataset.state = state;
  const text = `${MARKS[state]} ${words}`;
  if (line.textContent !== text) line.textContent = text;
}

function failed(which, error) {
  if (error instanceof Broken) show(which, "bad", `${which === "chain" ? "Chain" : "Checkpoint"}: ${error.message}`);
  else show(which, "none", `${which === "chain" ? "Chain" : "Checkpoint"}: could not be checked (${error.message})`);
}

// The chain, and what its records state.

const chain = new proofs.Chain();
const stated = new Map();
const first = Math.min(...[...document.querySelectorAll("[data-seq].entry")].map((each) => Number(each.dataset.seq)), upto + 1);

async function readOn() {
  for (;;) {
    const words = chain.seq + 1 >= first;
    const limit = Math.min(words ? 100 : first - 1 - chain.seq, live ? 1000 : upto - chain.seq, 1000);
    if (limit < 1) return;
    const page = await ask(`${api}/chain?after=${chain.seq}&limit=${limit}&words=${words}`);
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
  const [statements, numbers, digests] = decoded(facts, cell);
  await proofs.checkCells(cells, numbers, proofs.bytesOf(digests.$bytes));
  // Those of three items take something back.
  return statements.filter((each) => each.length === 4).map(([, label, fields, keywords]) => ({ label, fields, said: keywords }));
}

// What stands on the page, against that. A browser reads lines and NULs of a document in its own way.

const plain = (text) => inWords(text).replace(/\r\n?/g, "\n").replaceAll("\0", "");
const slot = (element, name) => plain(element.querySelector(`[data-slot='${name}']`)?.textContent ?? "");
const answer = (message) => plain(message?.content) || plain(message?.refusal);
const KINDS = {
  turn: (each) => ["user", plain(each.said.input)],
  steered: (each) => ["user", plain(each.said.input)],
  "model-output": (each) => (answer(each.said.message) || !each.said.message?.tool_calls?.length) && ["model", answer(each.said.message)],
  "tool-call": (each) => ["tool", plain(each.said.arguments), plain(each.said.name)],
};
const CAME = { "tool-result": "output", "approval-refused": "reason" };

function checkShown() {
  const turns = [...document.querySelectorAll("[data-turn]")].map((each) => Number(each.dataset.turn));
  const shown = [...document.querySelectorAll("#turns .entry[data-seq]")].filter((each) => Number(each.dataset.seq) <= chain.seq);
  const left = new Set(shown);
  const came = new Map();
  let missing = 0;
  for (const [seq, statements] of stated) {
    for (const each of statements) {
      const [turn, , call] = each.fields;
      if (each.label in CAME) came.set(`${turn} ${call}`, plain(each.said[CAME[each.label]]));
      const wanted = turns.includes(turn) && KINDS[each.label]?.(each);
      if (!wanted) continue;
      const [kind, text, title] = wanted;
      const found = [...left].find(
        (entry) =>
          Number(entry.dataset.seq) === seq && entry.classList.contains(kind) && slot(entry, "text") === text &&
          (title === undefined || slot(entry, "title") === title),
      );
      if (found) left.delete(found);
      else missing = missing || seq;
    }
  }
  for (const entry of left) {
    // A call that waits for a word may be shown by that, which is stated with it.
    const waits = (stated.get(Number(entry.dataset.seq)) ?? []).some(
      (each) => each.label === "approval-wanted" && plain(each.said.arguments) === slot(entry, "text"),
    );
    if (!waits) throw new Broken(`what is shown as said at seq ${entry.dataset.seq} is not what its record says`);
  }
  for (const entry of shown) {
    const details = entry.querySelector("[data-slot='came']");
    if (!details || details.hidden) continue;
    const output = slot(entry, "output");
    if (output && came.get(entry.dataset.callId) !== output) {
      throw new Broken(`what is shown of the call at seq ${entry.dataset.seq} is not what came of it`);
    }
  }
  return missing;
}

async function checkChain() {
  await readOn();
  if (chain.seq < upto || chain.hashes.get(upto) !== badge.dataset.hash) {
    throw new Broken(`record ${upto} is not the one that the page is of`);
  }
  const talks = document.getElementById("turns") !== null;
  if (talks) {
    // What has come since may not be shown yet.
    for (let tries = 0, missing = checkShown(); missing; tries += 1, missing = checkShown()) {
      if (!live || tries === 5) throw new Broken(`something that was said at seq ${missing} is not shown`);
      await new Promise((done) => setTimeout(done, 1000));
    }
  }
  const words = talks ? ", and what is shown was said in them" : "";
  show("chain", "good", `Chain: ${chain.seq} records, each names the one before it${words}`);
}

// The checkpoint.

const remembered = () => {
  try {
    return JSON.parse(localStorage.getItem(REMEMBERED));
  } catch {
    return null;
  }
};

async function checkCheckpoint() {
  const texts = (await ask("/api/v1/keys")).keys;
  const keys = await Promise.all(texts.map(proofs.keyOf));
  const found = await ask(`${api}/receipts/${chain.seq}`);
  let now = await proofs.checkReceipt(found.receipt, chain.header, keys);
  const before = remembered();
  let [state, seen] = ["good", "this browser sees its key for the first time, and remembers it"];
  if (before && before.origin !== now.origin) {
    [state, seen] = ["warn", "at this address there was another log before"];
  } else if (before) {
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
    if (!before.keys.includes(now.key.text)) [state, seen] = ["warn", "it has a new key, for which its former one vouches in the log"];
  }
  const root = btoa(String.fromCharCode(...now.root));
  localStorage.setItem(REMEMBERED, JSON.stringify({ origin: now.origin, keys: texts, size: now.size, root }));
  show("checkpoint", state, `Checkpoint: record ${chain.seq} is in a log of ${now.size} that the key ${now.key.id} has signed; ${seen}`);
}

async function check() {
  show("chain", "busy", "Chain: being checked");
  try {
    if (!globalThis.crypto?.subtle) throw new Error("browsers hash for pages with TLS, and of this machine, alone");
    await checkChain();
  } catch (error) {
    failed("chain", error);
    show("checkpoint", "none", "Checkpoint: not looked at, without a chain");
    return;
  }
  try {
    await checkCheckpoint();
  } catch (error) {
    if (error.code === "not_signing") show("checkpoint", "none", "Checkpoint: none, this server does not sign");
    else if (error.name === "NotSupportedError") show("checkpoint", "none", "Checkpoint: could not be checked (this browser has no Ed25519)");
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
