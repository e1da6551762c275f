// An agent of one's own, live: what it states appears as it does, and so do its messages, where it keeps some.
// What it answers is what its `turn` gives. Of a message that it has kept, or not, nothing is told: so it is looked whether
// the session has more than before, which loads nothing.
// What is said stands there at once, as sent, and gives way to what was kept of it.
// The one rule: one look at a time, each from where the one before has ended.

import { fill, lineOf, messageOf } from "./parts.js";
import { inWords } from "./said.js";
import { Refused } from "./streams.js";
import {
  api, askWord, begin, hear, isAt, nearEnd, piece, previews, sent, session, status, talks, toEnd, turns, wordSaid,
} from "./talking.js";

const MOST = 1000; // facts that stay
const NEWEST = 100; // messages that are shown of a list that was shortened
const OFTEN = 1000;
const SELDOM = 5000;
const stated = document.getElementById("stated");
const earlier = document.getElementById("earlier");
const kept = turns.dataset.count !== undefined;
let count = Number(turns.dataset.count ?? 0);
let seq = Number(turns.dataset.seq);
let waits = 0;
let shown = 0; // messages that have come since the page was loaded

const pending = () => [...turns.querySelectorAll(".sent")];

// Before what was sent, and is not kept yet.
function add(element) {
  const was = nearEnd();
  document.getElementById("nothing")?.remove();
  turns.insertBefore(element, pending()[0] ?? null);
  toEnd(was);
}

function asSent(text) {
  const made = messageOf({ role: "user", content: text }, "sent");
  document.getElementById("nothing")?.remove();
  turns.append(made);
  made.classList.add("sent");
  toEnd(true);
  return made;
}

// It has kept that: what was sent so stands there as kept.
function isKept(message) {
  if (message?.role !== "user") return;
  const text = inWords(message.content).trim();
  pending().find((each) => each.querySelector("[data-slot='text']").textContent.trim() === text)?.remove();
}

function told({ event: kind, data }) {
  if (kind === "piece") piece(data);
  if (kind !== "message") return;
  const was = nearEnd();
  stated.append(lineOf(data));
  while (stated.children.length > MOST) stated.firstElementChild.remove();
  const call = data.fields[2];
  if (data.label === "approval-wanted") askWord(call, data.keywords);
  if (["approval-given", "approval-refused", "approval-withdrawn"].includes(data.label)) wordSaid(call);
  toEnd(was);
}

async function given(address) {
  const answer = await fetch(address);
  const said = await answer.json();
  if (!answer.ok) throw new Refused(answer.status, said.error);
  return said;
}

// It has shortened its list to so many: those that are shown are none of it. Gives behind how many the newest begin.
function begunAnew(many) {
  const first = Math.max(0, many - NEWEST);
  for (const entry of turns.querySelectorAll(".entry:not(.sent)")) entry.remove();
  earlier.hidden = !first;
  fill(earlier, { many: first });
  earlier.querySelector("a").href = `?before=${first + 1}`;
  return first;
}

// The messages that it has kept since the last look.
let looking = Promise.resolve();
function look() {
  looking = looking.then(looked).catch(() => {}); // it is looked again
  return looking;
}

async function looked() {
  const { sessions } = await given(`/api/v1/sessions?limit=1&prefix=${encodeURIComponent(session)}`);
  if (sessions[0]?.id !== session || sessions[0].seq === seq) return;
  let last = null;
  for (let next = count; kept && next !== null; ) {
    const page = await given(`${api}/messages?after=${next}`);
    if (page.count < count) {
      count = next = begunAnew(page.count);
      continue;
    }
    for (const message of page.messages) {
      count += 1;
      last = message;
      shown += 1;
      isKept(message);
      add(messageOf(message, count));
    }
    next = page.next;
  }
  if (last || !waits) previews("");
  seq = sessions[0].seq;
  isAt(seq);
}

async function looksOn() {
  for (;;) {
    await new Promise((done) => setTimeout(done, waits ? OFTEN : SELDOM));
    if (!document.hidden) await look();
  }
}

// What its turn gave; where it has kept that as its last message, it stands there already.
function answered(output) {
  const text = inWords(output);
  const last = [...turns.querySelectorAll(".entry:not(.sent)")].at(-1)?.querySelector("[data-slot='text']");
  if (kept && last?.textContent === text) return;
  const made = messageOf({ role: "assistant", content: text }, "");
  made.querySelector("[data-slot='title']").textContent = "its answer";
  add(made);
}

talks(async (text, _, key) => {
  const said = asSent(text);
  const before = shown;
  waits += 1;
  status.textContent = "It is at work.";
  try {
    const { output } = await sent("turn", text, key);
    await look();
    previews("");
    if (shown > before) said.remove(); // what it has kept is what stands there
    said.classList.remove("sent");
    fill(said, { number: "" });
    answered(output);
    if (waits === 1) status.textContent = "";
  } catch (error) {
    said.remove(); // it is written in the form again
    throw error;
  } finally {
    waits -= 1;
    look();
  }
});

if (session) {
  hear("(_ . _)", told, () => {
    status.textContent = "";
  });
  looksOn();
  if (document.querySelector("#turns .entry, #words > *")) begin();
}
