// A conversation, live: what is said in it appears as it is stated, whoever says it; an answer of a model as it comes.
// Facts come by the dataspace and are shown in their order, each once. What a turn streams besides is a preview.
// The one rule: templates of the page are filled with text. Nothing that was said is ever taken for a document.

import { ENDED, eventsOf, follow, Refused } from "./streams.js";
import { inEnd, inPath, inWords, isLong, moment } from "./said.js";

const turns = document.getElementById("turns");
const session = turns.dataset.session;
const status = document.getElementById("status");
const form = document.getElementById("say");
const api = `/api/v1/sessions/${inPath(session)}`;
const STATES = { "tool-unknown": "unknown", "approval-given": "approved", "approval-refused": "refused" };

function part(name) {
  return document.getElementById(`part-${name}`).content.firstElementChild.cloneNode(true);
}

function fill(element, slots) {
  for (const [name, text] of Object.entries(slots)) {
    const slot = element.querySelector(`[data-slot='${name}']`);
    if (!slot) continue;
    slot.textContent = text;
    if (slot.dataset.name && isLong(text)) {
      slot.classList.add("long");
      slot.tabIndex = 0;
      slot.role = "region";
      slot.ariaLabel = slot.dataset.name;
    }
  }
  return element;
}

const nearEnd = () => innerHeight + scrollY > document.body.scrollHeight - 160;
const toEnd = (was) => was && scrollTo({ top: document.body.scrollHeight });

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
    fill(section, { number: `Turn ${n}` }).querySelector("h2 .quiet").textContent = moment(event.time);
    turns.append(section);
    open.add(n);
    entry(n, "user", event.seq, { title: said.by || "somebody", text: inWords(said.input) });
    runs();
  },
  steered(n, event, said) {
    entry(n, "user", event.seq, { title: said.by || "somebody", text: inWords(said.input) });
  },
  "model-output"(n, event, said) {
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
    facts["tool-call"](n, event, said);
    setState(calls.get(`${n} ${event.fields[2]}`), "waits");
    askWord(event.fields[2], said);
  },
  "tool-result"(n, event, said) {
    const call = calls.get(`${n} ${event.fields[2]}`);
    const state = call?.querySelector("[data-slot='state']").dataset.state;
    setState(call, state === "refused" ? state : said.error ? "failed" : "answered", inWords(said.output));
  },
};

function told({ event: kind, data }) {
  if (kind !== "message" || data.kind !== "assert") return;
  const n = data.fields[0];
  if (typeof n !== "number") return;
  const was = nearEnd();
  document.getElementById("head").textContent = data.seq;
  document.getElementById("past").href = `/sessions/${inPath(session)}/at/${data.seq}`;
  facts[data.label]?.(n, data, data.keywords);
  if (data.label in STATES) {
    const call = calls.get(`${n} ${data.fields[2]}`);
    setState(call, STATES[data.label], data.label === "approval-refused" ? inWords(data.keywords.reason) : undefined);
    answered(data.fields[2]);
  }
  const end = inEnd(data.label, data.keywords);
  if (end !== null) {
    ended(n, end);
    offerFork(n);
  }
  toEnd(was);
  document.dispatchEvent(new CustomEvent("stated"));
}

// What waits for a person.

function askWord(id, said) {
  const words = document.getElementById("words");
  if (!document.getElementById("part-word") || find(id)) return;
  const asked = fill(part("word"), { title: said.name ?? "", text: inWords(said.arguments) });
  asked.action = `/sessions/${inPath(session)}/approvals/${inPath(id)}`;
  asked.dataset.call = id;
  asked.elements.key.value = newKey();
  words.append(asked);
}

const find = (id) => [...document.querySelectorAll("form[data-call]")].find((each) => each.dataset.call === id);
const answered = (id) => find(id)?.remove();

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

// What is not done. Who is not logged in any more is led to where that is done; a session that is gone takes nothing.

function refused(what, error) {
  status.textContent = `${what}: ${error.message}.${error.remedy && error.status !== 401 ? ` What to do: ${error.remedy}.` : ""}`;
  document.getElementById("again").hidden = error.status !== 401;
}

function ends(error) {
  refused("Nothing more is shown here", error);
  if (!ENDED.includes(error.code)) return;
  for (const button of document.querySelectorAll("main form button")) button.disabled = true;
}

// Saying something.

const newKey = () => `page-${[...crypto.getRandomValues(new Uint8Array(12))].map((b) => b.toString(16).padStart(2, "0")).join("")}`;
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const preview = document.getElementById("preview");
const previewText = document.getElementById("preview-text");
let said = { effect: "", attempt: 0 };

function previews(text) {
  previewText.textContent = text;
  preview.hidden = text === "";
}

function piece(data) {
  if (data.effect !== said.effect || data.attempt !== said.attempt) previews("");
  said = data;
  if (data.failed) status.textContent = `The model has failed (${data.failed}), and is asked again.`;
  const was = nearEnd();
  if (data.missed) previews("… ");
  previews(previewText.textContent + data.text);
  toEnd(was);
}

// One input, until it is answered: whatever interrupts it, it is asked again with the same key, and counts once.
async function say(input, key, how) {
  let last = "";
  for (let wait = 500; ; wait = Math.min(wait * 2, 10000)) {
    try {
      const headers = { "content-type": "application/json", "idempotency-key": key };
      if (how === "turn") headers.accept = "text/event-stream";
      if (last) headers["last-event-id"] = last;
      const answer = await fetch(`${api}/${how}`, { method: "POST", headers, body: JSON.stringify({ input }) });
      if (how !== "turn" && answer.ok) return;
      for await (const event of eventsOf(answer)) {
        wait = 500;
        if (event.id) last = event.id;
        if (event.event === "piece") piece(event.data);
        else if (event.event === "model-output") previews("");
        else if (event.event === "done") return;
        else if (event.event === "error") return; // what became of the turn is a fact, and is shown as one
      }
    } catch (error) {
      if (error instanceof Refused && error.status !== 503) throw error;
    } finally {
      previews("");
    }
    status.textContent = "The server is away. It is asked again …";
    await pause(wait);
  }
}

form?.addEventListener("submit", async (event) => {
  event.preventDefault();
  const box = form.elements.input;
  const text = box.value;
  const how = event.submitter?.value === "steer" ? "steer" : "turn";
  const key = form.elements.key.value;
  form.elements.key.value = newKey();
  box.value = "";
  status.textContent = "Sent.";
  try {
    await say(text, key, how);
  } catch (error) {
    refused("Not taken", error);
    if (!box.value) box.value = text;
  }
});

document.getElementById("input")?.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
  event.preventDefault();
  form.requestSubmit(form.querySelector("button[value='turn']"));
});

if (session) {
  for (const call of turns.querySelectorAll("[data-call-id]")) calls.set(call.dataset.callId, call);
  for (const each of turns.querySelectorAll("[data-open]")) open.add(Number(each.dataset.turn));
  runs();
  const pattern = encodeURIComponent("(_ _ . _)");
  follow(`/api/v1/dataspace?session=${encodeURIComponent(session)}&pattern=${pattern}`, {
    cursor: turns.dataset.cursor,
    told,
    state: (is, error) => {
      if (is === "away") status.textContent = "The server is away. What comes meanwhile is shown when it is back.";
      if (is === "ended") ends(error);
      if (is === "live" && status.textContent.startsWith("The server is away")) runs();
    },
  });
  if (!location.hash) scrollTo({ top: document.body.scrollHeight });
}
