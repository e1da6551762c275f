// Parts of a page: its templates, filled.
// The one rule: templates of the page are filled with text. Nothing that was said is ever taken for a document.

import { beginning, inPath, inWords, isLong, moment } from "./said.js";

export function part(name) {
  return document.getElementById(`part-${name}`).content.firstElementChild.cloneNode(true);
}

export function fill(element, slots) {
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

// A fact, or one that cannot be read, as a line.
export function lineOf(event) {
  const made = part("line");
  const slot = (name) => made.querySelector(`[data-slot='${name}']`);
  slot("sign").textContent = event.kind === "assert" ? "+" : event.kind === "unreadable" ? "?" : "−";
  const text = event.text ?? `cannot be read: ${event.what}`;
  slot("text").textContent = beginning(text);
  if (isLong(text)) {
    slot("whole").textContent = text;
    made.querySelector("details").hidden = false;
  }
  slot("session").querySelector("bdi").textContent = event.session || "the store";
  if (event.session) slot("session").href = `/sessions/${inPath(event.session)}`;
  slot("seq").textContent = event.seq;
  slot("time").textContent = event.time ? moment(event.time) : "";
  return made;
}

const KINDS = { user: "user", assistant: "model", tool: "tool" };

// A message of a conversation, as `past.py` shows it: one that is none as what it is.
export function messageOf(said, number) {
  const made = part("message");
  const message = said && typeof said === "object" && !Array.isArray(said) ? said : { content: said };
  const kind = KINDS[message.role] ?? "note";
  made.className = `entry ${kind}`;
  const text = made.querySelector("[data-slot='text']");
  if (kind === "tool") {
    text.classList.add("mono");
    text.dataset.name = "What it gave";
  }
  fill(made, { title: inWords(message.role), number, text: inWords(message.content) });
  for (const call of Array.isArray(message.tool_calls) ? message.tool_calls : []) {
    const asked = call?.function ?? { arguments: call };
    made.append(fill(part("call"), { title: inWords(asked.name), arguments: inWords(asked.arguments) }));
  }
  return made;
}
