// An agent of one's own, live: what it states appears as it does, and so do its messages, where it keeps some.
// What it answers is what its `turn` gives. Of a message that it has kept, or not, nothing is stated: so it is looked when
// the session has a record more, which loads nothing.
// What is said stands there at once, as sent, and gives way to what was kept of it.
// The one rule: one look at a time, each from where the one before has ended.

import { fill, lineOf, messageOf } from "./parts.js";
import { inWords } from "./said.js";
import { Refused } from "./streams.js";
import {
  api, askWord, begin, hear, nearEnd, piece, previewing, previews, sent, session, status, talks, toEnd, turns, wordSaid,
} from "./talking.js";

const MOST = 1000; // facts that stay
const NEWEST = 100; // messages that are shown of a list that was shortened
const AGAIN = 5000;
const stated = document.getElementById("stated");
const earlier = document.getElementById("earlier");
const kept = turns.dataset.count !== undefined;
let count = Number(turns.dataset.count ?? 0);
let head = Number(turns.dataset.seq); // of the session
let stale = false; // it may have kept more than was looked at
let over = ""; // the effect whose answer stood there as a preview when the head was told
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
  if (kind === "head" && data.seq !== head) {
    head = data.seq;
    over = previewing();
    stale = true;
    look();
  }
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
  looking = looking.then(looked).catch((error) => {
    stale = true;
    if (!(error.status < 429)) setTimeout(look, AGAIN);
  });
  return looking;
}

async function looked() {
  if (!stale) return;
  stale = false;
  const ended = over;
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
  if (ended === previewing() && (last || !waits)) previews("");
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
    stale = true; // whether it was told how far the session is, or not yet
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
  }
});

if (session) {
  hear("(_ . _)", told, () => {
    status.textContent = "";
  });
  if (document.querySelector("#turns .entry, #words > *")) begin();
}
