// The live tail of the log: what matches appears as it is stated, and stays in order over whatever interrupts it.
// The one rule: what is held back is not lost. It appears when the tail goes on.

import { lineOf } from "./parts.js";
import { follow } from "./streams.js";

const MOST = 1000; // lines that stay
const tail = document.getElementById("tail");
const status = document.getElementById("status");
const hold = document.getElementById("hold");
const held = [];
let came = 0;

function show(events) {
  const near = innerHeight + scrollY > document.body.scrollHeight - 80;
  tail.append(...events.map(lineOf));
  while (tail.children.length > MOST) tail.firstElementChild.remove();
  if (near) scrollTo({ top: document.body.scrollHeight });
}

function told({ event: kind, data }) {
  if (kind !== "message" && kind !== "unreadable") return;
  document.getElementById("none")?.remove();
  came += 1;
  if (hold.getAttribute("aria-pressed") === "true") held.push(data);
  else show([data]);
}

if (tail?.dataset.cursor) {
  hold.hidden = false;
  hold.addEventListener("click", () => {
    const holds = hold.getAttribute("aria-pressed") !== "true";
    hold.setAttribute("aria-pressed", holds);
    if (!holds) show(held.splice(0));
  });
  const query = new URLSearchParams({ pattern: tail.dataset.pattern });
  if (tail.dataset.session) query.set("session", tail.dataset.session);
  let state = "live";
  follow(`/api/v1/dataspace?${query}`, {
    cursor: tail.dataset.cursor,
    told,
    state: (is, error) => {
      state = is;
      if (is === "ended") status.textContent = `It ends here: ${error.message}.`;
    },
  });
  // What screen readers are told is how much has come, and not each line of it.
  setInterval(() => {
    if (state === "ended") return;
    const words = state === "away" ? "The server is away; the tail goes on when it is back." : `Live. ${came} came since the page was opened${held.length ? `, ${held.length} are held` : ""}.`;
    if (status.textContent !== words) status.textContent = words;
  }, 2000);
  scrollTo({ top: document.body.scrollHeight });
}
