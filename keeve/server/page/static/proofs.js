// What is proven, checked by the browser: the chain of a session, and the checkpoint that a log has signed.
// The formats stand in docs/log-format.md ("Chains") and docs/checkpoints.md; the hashes are WebCrypto's.
// The one rule: whatever does not follow raises `Broken`, which says what. Nothing passes because it is not there.

export class Broken extends Error {}

const DOMAIN = "keeve record 1\n";
const FORKED = 4;
const encoder = new TextEncoder();
const numberAt = (data, at) => Number(new DataView(data.buffer, data.byteOffset).getBigUint64(at));

export const bytesOf = (base64) => Uint8Array.from(atob(base64), (each) => each.charCodeAt(0));
export const hexOf = (data) => [...data].map((each) => each.toString(16).padStart(2, "0")).join("");
export const same = (one, other) => one.length === other.length && one.every((each, n) => each === other[n]);

function must(holds, what) {
  if (!holds) throw new Broken(what);
}

export async function sha256(...parts) {
  const data = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    data.set(part, at);
    at += part.length;
  }
  return new Uint8Array(await crypto.subtle.digest("SHA-256", data));
}

// A chain from one of its records on, as far as it was read: each has to name the hash of the one before it. `before` is
// what the first one names.
export class Chain {
  hash = new Uint8Array(32);
  header = null;
  before = null;
  uid = "";
  hashes = new Map();

  constructor(first = 1) {
    this.first = first;
    this.seq = first - 1;
  }

  async add(seq, header) {
    must(header.length === 112 && same(header.subarray(0, 15), encoder.encode(DOMAIN)), `record ${seq} is none`);
    const uid = hexOf(header.subarray(15, 31));
    must(numberAt(header, 31) === this.seq + 1 && seq === this.seq + 1, `record ${this.seq + 1} is missing`);
    const before = header.subarray(48, 80);
    if (seq === this.first) this.before = before;
    if (seq !== this.first || seq === 1) must(same(before, this.hash), `record ${seq} does not name the one before it`);
    must(!this.uid || uid === this.uid || header[39] === FORKED, `record ${seq} is another session's`);
    this.uid = uid;
    this.seq = seq;
    this.header = header;
    this.hash = await sha256(header);
    this.hashes.set(seq, hexOf(this.hash));
  }
}

// What a record has stated has to hash to what its header names: gives its encoded facts, and the cells by number.
export async function statedBy(header, words) {
  const [deeds, salt, facts] = [words.deeds, words.salt, words.facts].map(bytesOf);
  const body = await sha256(deeds, await sha256(salt, facts));
  must(same(body, header.subarray(80, 112)), "what a record says is not what its hash is over");
  const cells = new Map();
  for (const { number, data } of words.cells) cells.set(number, bytesOf(data));
  return { facts, cells };
}

export async function checkCells(cells, numbers, digests) {
  must(digests.length === 32 * numbers.length, "the digests of a record's longer texts are not complete");
  for (const [n, number] of numbers.entries()) {
    const cell = cells.get(number);
    if (cell) must(same(await sha256(cell), digests.subarray(32 * n, 32 * n + 32)), "a longer text is not what its record names");
  }
}

// The tree of RFC 6962.

const node = (left, right) => sha256(Uint8Array.of(1), left, right);
const odd = (n) => n % 2 === 1;
const half = (n) => Math.floor(n / 2);

// From a leaf, or an older root, up: both algorithms are those of RFC 9162, 2.1.3.2 and 2.1.4.2.
export async function checkIncluded(hash, index, size, proof, root) {
  must(index < size, "the record is behind the checkpoint");
  let [at, last, found] = [index, size - 1, await sha256(Uint8Array.of(0), hash)];
  for (const each of proof) {
    must(last > 0, "the proof is too long");
    if (odd(at) || at === last) {
      found = await node(each, found);
      while (!odd(at) && at !== 0) [at, last] = [half(at), half(last)];
    } else {
      found = await node(found, each);
    }
    [at, last] = [half(at), half(last)];
  }
  must(last === 0 && same(found, root), "the record does not lead to the root that was signed");
}

export async function checkExtends(old, now, proof) {
  must(old.size <= now.size, `the log has ${now.size} records, and had ${old.size}`);
  const wrong = "the log does not go on from what this browser has seen of it";
  if (old.size === now.size) return must(same(old.root, now.root) && !proof.length, wrong);
  let [at, last] = [old.size - 1, now.size - 1];
  while (odd(at)) [at, last] = [half(at), half(last)];
  const path = Number.isInteger(Math.log2(old.size)) ? [old.root, ...proof] : proof;
  must(path.length > 0, wrong);
  let [before, after] = [path[0], path[0]];
  for (const each of path.slice(1)) {
    must(last > 0, wrong);
    if (odd(at) || at === last) {
      [before, after] = [await node(each, before), await node(each, after)];
      while (!odd(at) && at !== 0) [at, last] = [half(at), half(last)];
    } else {
      after = await node(after, each);
    }
    [at, last] = [half(at), half(last)];
  }
  return must(last === 0 && same(before, old.root) && same(after, now.root), wrong);
}

// Signed notes.

export async function keyOf(text) {
  const [name, id, ...rest] = text.split("+");
  const data = bytesOf(rest.join("+"));
  must(data.length === 33 && data[0] === 1, "the log's key is of a kind that is not known here");
  const named = (await sha256(encoder.encode(`${name}\n`), data)).subarray(0, 4);
  must(hexOf(named) === id, "the log's key has another id than it says");
  return { name, id, text, key: await crypto.subtle.importKey("raw", data.subarray(1), { name: "Ed25519" }, false, ["verify"]) };
}

// A checkpoint that one of these keys has signed: {origin, size, root, key}.
export async function checkpointOf(note, keys) {
  const end = note.indexOf("\n\n") + 1;
  must(end > 0, "the checkpoint is no signed note");
  const text = note.slice(0, end);
  const [origin, size, root] = text.split("\n");
  must(/^[1-9]\d{0,14}$/.test(size), "the checkpoint has no size");
  for (const line of note.slice(end + 1).split("\n").filter(Boolean)) {
    const [dash, name, signature] = line.split(" ");
    const data = bytesOf(signature ?? "");
    const key = keys.find((each) => dash === "—" && each.name === name && each.id === hexOf(data.subarray(0, 4)));
    if (!key || name !== origin) continue; // somebody else's, such as a witness's
    const good = await crypto.subtle.verify("Ed25519", key.key, data.subarray(4), encoder.encode(text));
    must(good, "the signature of the checkpoint is wrong");
    return { origin, size: Number(size), root: bytesOf(root), key };
  }
  throw new Broken("the log's key has not signed the checkpoint");
}

// A receipt has to be of this header, whose hash has to lead to a checkpoint that was signed.
export async function checkReceipt(receipt, header, keys) {
  const end = receipt.indexOf("\n\n");
  const [first, extra, index, ...proof] = receipt.slice(0, end).split("\n");
  must(end > 0 && first === "c2sp.org/tlog-proof@v1", "the receipt is none");
  must(same(bytesOf(extra.replace(/^extra /, "")), header), "the receipt is another record's");
  const checkpoint = await checkpointOf(receipt.slice(end + 2), keys);
  const at = Number(index.replace(/^index /, ""));
  await checkIncluded(await sha256(header), at, checkpoint.size, proof.map(bytesOf), checkpoint.root);
  return checkpoint;
}

// `old N`, hashes, an empty line, the note: that a checkpoint goes on from an older one.
export async function checkExtension(text, old, keys) {
  const end = text.indexOf("\n\n");
  const [first, ...proof] = text.slice(0, end).split("\n");
  must(end > 0 && first === `old ${old.size}`, "the server proves something else than it was asked");
  const now = await checkpointOf(text.slice(end + 2), keys);
  await checkExtends(old, now, proof.map(bytesOf));
  return now;
}
