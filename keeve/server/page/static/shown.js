// What stands on the page, held against what records state.
// The one rule: what is shown was stated, by that record and in these words; and nothing of the turns shown is left out.

import { Broken } from "./proofs.js";
import { inEnd, inWords } from "./said.js";

// A browser reads lines and NULs of a document in its own way.
const plain = (said) => inWords(said).replace(/\r\n?/g, "\n").replaceAll("\0", "");
const loose = (text) => [...text.replace(/-?\d[\d.eE+-]*/g, "#")].sort().join("");
const slot = (element, name) => element.querySelector(`[data-slot='${name}']`)?.textContent ?? "";

// Text is the same letter by letter; of one that is cut, as far as it is shown. Where JSON has a value in other letters
// here, it is held against it without those.
function says(text, said, odd) {
  const here = plain(text);
  const there = plain(said);
  if (here === there) return true;
  const beginning = /^([^]*)…\n\([\d,]+ more letters\)$/.exec(here)?.[1];
  if (beginning !== undefined && there.startsWith(beginning)) return true;
  if (!odd || typeof said === "string") return false;
  if (beginning !== undefined) throw new Error("a value that is cut on the page has other letters here");
  return loose(here) === loose(there);
}

const content = (message) => (plain(message?.content) ? message.content : (message?.refusal ?? ""));
const talks = (message) => plain(content(message)) !== "" || !message?.tool_calls?.length;
const person = (said) => ["user", said.input, said.by || "somebody"];
const KINDS = {
  turn: (said) => person(said),
  steered: (said) => person(said),
  "model-output": (said) => talks(said.message) && ["model", content(said.message)],
  "tool-call": (said) => ["tool", said.arguments ?? "", said.name ?? ""],
};
const CAME = { "tool-result": "output", "approval-refused": "reason" };

// The call that is shown, of an id that may have had a number put behind it while it waited for a person.
function keyOf(calls, turn, call) {
  let key = `${turn} ${call}`;
  while (!calls.has(key) && /\.\d+$/.test(key)) key = key.replace(/\.\d+$/, "");
  return key;
}

// `stated` has statements by seq, of all records up to `upto` that may be of the turns shown. Raises `Broken`; gives the
// seq of something that is not shown, or 0. No turn is left out between those shown, nor behind them on a page that is live.
export function held(stated, upto, live) {
  const sections = new Map([...document.querySelectorAll("[data-turn]")].map((each) => [Number(each.dataset.turn), each]));
  const shown = [...document.querySelectorAll("#turns .entry[data-seq]")].filter((each) => Number(each.dataset.seq) <= upto);
  const [first, last] = [Math.min(...sections.keys()), Math.max(...sections.keys())];
  const left = new Set(shown);
  const calls = new Set(shown.map((entry) => entry.dataset.callId));
  const came = new Map();
  const ends = new Map();
  let missing = 0;
  for (const [seq, statements] of stated) {
    for (const { label, fields, said, odd } of statements) {
      const [turn, , call] = fields;
      if (label === "turn" && turn > first && (turn < last || live) && !sections.has(turn)) missing ||= seq;
      if (!sections.has(turn)) continue;
      if (label in CAME) came.set(keyOf(calls, turn, call), [said[CAME[label]], odd]);
      const end = inEnd(label, said);
      if (end !== null) ends.set(turn, [end, odd]);
      const wanted = KINDS[label]?.(said);
      if (!wanted) continue;
      const [kind, text, title] = wanted;
      const found = [...left].find(
        (entry) =>
          Number(entry.dataset.seq) === seq && entry.classList.contains(kind) && says(slot(entry, "text"), text, odd) &&
          (title === undefined || says(slot(entry, "title"), title, false)),
      );
      if (found) left.delete(found);
      else missing ||= seq;
    }
  }
  for (const entry of left) {
    // A call that waits for a word may be shown by that, which is stated with it.
    const waits = (stated.get(Number(entry.dataset.seq)) ?? []).some(
      ({ label, said, odd }) => label === "approval-wanted" && says(slot(entry, "text"), said.arguments, odd),
    );
    if (!waits) throw new Broken(`what is shown as said at seq ${entry.dataset.seq} is not what its record says`);
  }
  for (const entry of shown) {
    const details = entry.querySelector("[data-slot='came']");
    if (!details || details.hidden) continue;
    const [output, odd] = came.get(entry.dataset.callId) ?? [undefined, false];
    if (!says(slot(entry, "output"), output, odd)) {
      throw new Broken(`what is shown of the call at seq ${entry.dataset.seq} is not what came of it`);
    }
  }
  for (const [turn, section] of sections) {
    const words = plain(slot(section, "end").trim());
    const [end, odd] = ends.get(turn) ?? ["under way", false];
    if (says(words, plain(end).trim(), false)) continue;
    if (words === "under way" || end === "under way") missing ||= upto;
    else if (!odd || loose(words) !== loose(plain(end).trim())) throw new Broken(`turn ${turn} did not end as it is shown`);
  }
  return missing;
}
