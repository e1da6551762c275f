// A conversation, live: what is said in it appears as it is stated, whoever says it; an answer of a model as it comes.
// Facts come by the dataspace and are shown in their order, each once. What a model says between them is a preview.
// The one rule: nothing stands here but what was stated.

import { fill, part } from "./parts.js";
import { inEnd, inPath, inWords, moment } from "./said.js";
import {
  askWord, begin, hear, nearEnd, newKey, piece, previews, sent, session, status, talks, toEnd, turns, wordSaid,
} from "./talking.js";

const STATES = {
  "tool-unknown": "unknown", "approval-given": "approved", "approval-refused": "refused", "approval-withdrawn": "withdrawn",
};

// Facts.

const calls = new Map();
const open = new Set();

function add(turn, element) {
  const section = document.querySelector(`[data-turn='${turn}']`);
  section?.insertBefore(element, section.querySelector(".foot"));
}

function entry(turn, kind, seq, slots) {
  const made = fill(part(kind), { seq: `seq ${seq}`, ...slots });
  made.dataset.seq = seq;
  made.querySelector("[data-slot='seq']").href = `/sessions/${inPath(session)}/at/${seq}`;
  add(turn, made);
  return made;
}

// The call of an id, without the number that was put behind it while it waited for a person.
function callOf(turn, id) {
  for (let at = `${turn} ${id}`; ; at = at.replace(/\.\d+$/, "")) {
    if (calls.has(at) || !/\.\d+$/.test(at)) return calls.get(at);
  }
}

function setState(call, state, output) {
  const tag = call?.querySelector("[data-slot='state']");
  if (!tag) return;
  tag.textContent = tag.dataset.state = state;
  if (output !== undefined) {
    call.querySelector("[data-slot='came']").hidden = false;
    fill(call, { output });
  }
}

function ended(turn, words) {
  open.delete(turn);
  const section = document.querySelector(`[data-turn='${turn}']`);
  if (section) fill(section, { end: words });
  runs();
}

const facts = {
  turn(n, event, said) {
    document.getElementById("nothing")?.remove();
    const section = part("turn");
    section.id = `turn-${n}`;
    section.dataset.turn = n;
    const head = fill(section, { number: `Turn ${n}` }).querySelector("h2 .quiet");
    head.textContent = moment(event.time);
    if (said.via) {
      const via = document.createElement("bdi");
      via.textContent = inWords(said.via);
      head.append(" · via ", via);
    }
    turns.append(section);
    open.add(n);
    entry(n, "user", event.seq, { title: said.by || "somebody", text: inWords(said.input) });
    runs();
  },
  steered(n, event, said) {
    entry(n, "user", event.seq, { title: said.by || "somebody", text: inWords(said.input) });
  },
  "model-output"(n, event, said) {
    previews("");
    const message = said.message ?? {};
    const text = inWords(message.content) || inWords(message.refusal);
    if (text || !message.tool_calls?.length) entry(n, "model", event.seq, { text });
  },
  "tool-call"(n, event, said) {
    const key = `${n} ${event.fields[2]}`;
    if (calls.has(key)) return;
    const made = entry(n, "tool", event.seq, { title: said.name ?? "", text: inWords(said.arguments) });
    made.dataset.callId = key;
    calls.set(key, made);
    setState(made, "wanted");
  },
  "approval-wanted"(n, event, said) {
    const call = callOf(n, event.fields[2]);
    const waits = call?.querySelector("[data-slot='state']").dataset.state === "waits";
    if (!call || waits) facts["tool-call"](n, event, said); // one beside it waits under its id
    setState(callOf(n, event.fields[2]), "waits");
    askWord(event.fields[2], said);
  },
  "tool-result"(n, event, said) {
    const call = calls.get(`${n} ${event.fields[2]}`);
    const state = call?.querySelector("[data-slot='state']").dataset.state;
    setState(call, state === "refused" ? state : said.error ? "failed" : "answered", inWords(said.output));
  },
};

function told({ event: kind, data }) {
  if (kind === "piece") piece(data);
  if (kind !== "message" || data.kind !== "assert") return;
  const n = data.fields[0];
  if (typeof n !== "number") return;
  const was = nearEnd();
  facts[data.label]?.(n, data, data.keywords);
  if (data.label in STATES) {
    const call = callOf(n, data.fields[2]);
    setState(call, STATES[data.label], data.label === "approval-refused" ? inWords(data.keywords.reason) : undefined);
    wordSaid(data.fields[2]);
  }
  const end = inEnd(data.label, data.keywords);
  if (end !== null) {
    if (n === Math.min(...open)) previews("");
    ended(n, end);
    offerFork(n);
  }
  toEnd(was);
  document.dispatchEvent(new CustomEvent("stated"));
}

// The turn that runs.

function runs() {
  const running = open.size ? Math.min(...open) : null;
  const interrupt = document.getElementById("interrupt");
  if (!interrupt) return;
  interrupt.hidden = document.getElementById("steer").hidden = running === null;
  interrupt.elements.turn.value = running ?? "";
  fill(interrupt, { running: running ?? "" });
  status.textContent = running === null ? "" : `Turn ${running} is under way.`;
}

function offerFork(n) {
  const foot = document.querySelector(`[data-turn='${n}'] .foot`);
  if (!document.getElementById("part-fork") || !foot || foot.querySelector("form")) return;
  const made = part("fork");
  made.elements.turn.value = n;
  made.elements.key.value = newKey();
  made.querySelector("button").setAttribute("aria-label", `Fork here, after turn ${n}`);
  foot.append(made);
}

// Saying something: it is accepted; what becomes of it are facts, and shown as such.

talks((text, how, key) => sent(how === "steer" ? "steer" : "queue", text, key));

if (session) {
  for (const call of turns.querySelectorAll("[data-call-id]")) calls.set(call.dataset.callId, call);
  for (const each of turns.querySelectorAll("[data-open]")) open.add(Number(each.dataset.turn));
  runs();
  hear("(_ _ . _)", told, runs);
  begin();
}
