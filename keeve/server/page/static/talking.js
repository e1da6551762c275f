// What the pages share on which one talks to a session: a preview of what a model is saying, the forms for a person's word,
// what is sent until it is answered, and what is said of what was not done.
// The one rule: what is sent twice counts once. Each input has a key, which stays with it until it is answered.

import { fill, part } from "./parts.js";
import { inPath, inWords } from "./said.js";
import { ENDED, follow, Refused } from "./streams.js";

export const turns = document.getElementById("turns");
export const session = turns.dataset.session;
export const api = session && `/api/v1/sessions/${inPath(session)}`;
export const status = document.getElementById("status");

export const nearEnd = () => innerHeight + scrollY > document.body.scrollHeight - 160;
export const toEnd = (was) => was && scrollTo({ top: document.body.scrollHeight });

// Where one begins to read: at the end, but for who comes back to where they have read.
export function begin() {
  const [way] = performance.getEntriesByType("navigation");
  if (location.hash || way?.type === "back_forward") return;
  history.scrollRestoration = "manual";
  toEnd(true);
}

// How far the session is.
export function isAt(seq) {
  document.getElementById("head").textContent = seq;
  document.getElementById("past").href = `/sessions/${inPath(session)}/at/${seq}`;
}

// What waits for a person.

const find = (id) => [...document.querySelectorAll("form[data-call]")].find((each) => each.dataset.call === id);
export const wordSaid = (id) => find(id)?.remove();

export function askWord(id, said) {
  const words = document.getElementById("words");
  if (!document.getElementById("part-word") || find(id)) return;
  const asked = fill(part("word"), { title: said.name ?? "", text: inWords(said.arguments) });
  asked.action = `/sessions/${inPath(session)}/approvals/${inPath(id)}`;
  asked.dataset.call = id;
  asked.elements.key.value = newKey();
  words.append(asked);
}

document.getElementById("words")?.addEventListener("submit", async (event) => {
  const { call } = event.target.dataset;
  if (call === undefined || !api) return; // an effect is settled where all of it is shown anew
  event.preventDefault();
  const { key, reason } = event.target.elements;
  const approve = event.submitter?.value === "approve";
  const headers = { "content-type": "application/json", "idempotency-key": key.value };
  const body = JSON.stringify({ approve, reason: reason.value });
  try {
    const answer = await fetch(`${api}/approvals/${inPath(call)}`, { method: "POST", headers, body });
    if (!answer.ok) throw new Refused(answer.status, (await answer.json()).error);
    wordSaid(call);
    status.textContent = approve ? "Approved." : "Refused.";
  } catch (error) {
    refused("Not taken", error);
  }
});

// What a model is saying. With another effect, or attempt, or with all that was said so far, what stood there is void.

const preview = document.getElementById("preview");
const previewText = document.getElementById("preview-text");
let previewed = { effect: "", attempt: 0 };

export function previews(text) {
  previewText.textContent = text;
  preview.hidden = text === "";
}

// The effect whose answer stands there; "" where none does.
export const previewing = () => (preview.hidden ? "" : previewed.effect);

export function piece(data) {
  const was = nearEnd();
  if (data.so_far || data.effect !== previewed.effect || data.attempt !== previewed.attempt) previews("");
  previewed = data;
  if (data.failed) status.textContent = `The model has failed (${data.failed}), and is asked again.`;
  if (data.missed) previews("… ");
  previews(previewText.textContent + data.text);
  toEnd(was);
}

// What is not done. Who is not logged in any more is led to where that is done; a session that is gone takes nothing.

export function refused(what, error) {
  // What is to be done is said by the API, in its words: what names paths and headers is nothing for people.
  const remedy = error.status === 401 || /GET |POST |Idempotency-Key|\/api\//.test(error.remedy ?? "") ? "" : error.remedy;
  status.textContent = `${what}: ${error.message}.${remedy ? ` What to do: ${remedy}.` : ""}`;
  document.getElementById("again").hidden = error.status !== 401;
}

function ends(error) {
  refused("Nothing more is shown here", error);
  if (!ENDED.includes(error.code)) return;
  for (const button of document.querySelectorAll("main form button")) button.disabled = true;
}

// Facts that match the pattern, the pieces between them, and how far the session is; `back` is called when the server is
// there again.
export function hear(pattern, told, back) {
  const away = "The server is away.";
  const asked = new URLSearchParams({ session, pattern, pieces: true, head: true });
  follow(`/api/v1/dataspace?${asked}`, {
    cursor: turns.dataset.cursor,
    told: (event) => {
      if (event.event === "head") isAt(event.data.seq);
      told(event);
    },
    state: (is, error) => {
      if (is === "away") status.textContent = `${away} What comes meanwhile is shown when it is back.`;
      if (is === "ended") ends(error);
      if (is === "live" && status.textContent.startsWith(away)) back();
    },
  });
}

// Saying something.

export const newKey = () => `page-${[...crypto.getRandomValues(new Uint8Array(12))].map((b) => b.toString(16).padStart(2, "0")).join("")}`;
const pause = (ms) => new Promise((done) => setTimeout(done, ms));
const AWAY = ["stopping", "not_running"];

// One input, until it is answered: whatever interrupts it, it is asked again with the same key, and counts once.
export async function sent(how, input, key) {
  for (let wait = 500; ; wait = Math.min(wait * 2, 10000)) {
    try {
      const headers = { "content-type": "application/json", "idempotency-key": key };
      const answer = await fetch(`${api}/${how}`, { method: "POST", headers, body: JSON.stringify({ input }) });
      const said = await answer.json();
      if (answer.ok) return said;
      throw new Refused(answer.status, said.error);
    } catch (error) {
      if (error instanceof Refused && !AWAY.includes(error.code)) throw error;
    }
    status.textContent = "The server is away. It is asked again …";
    await pause(wait);
  }
}

// Has `say(text, how, key)` called with what is written. What was not taken is written there again.
export function talks(say) {
  const form = document.getElementById("say");
  form?.addEventListener("submit", async (event) => {
    event.preventDefault();
    const box = form.elements.input;
    const text = box.value;
    const key = form.elements.key.value;
    form.elements.key.value = newKey();
    box.value = "";
    status.textContent = "Sent.";
    try {
      await say(text, event.submitter?.value, key);
    } catch (error) {
      refused("Not taken", error);
      if (!box.value) box.value = text;
    }
  });
  form?.elements.input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey)) return;
    event.preventDefault();
    form.requestSubmit(form.querySelector("button"));
  });
}
