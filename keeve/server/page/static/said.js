// What was said, as text: the twin of `said.py`.
// The one rule: nothing is left out in silence. What is no text is named, or written as JSON.

export function inWords(said) {
  if (said === null || said === undefined) return "";
  if (typeof said === "string") return said;
  if (said.$erased === true) return "[erased]";
  if (Array.isArray(said) && said.length && said.every((part) => part && typeof part === "object" && "type" in part)) {
    return said.map(inPart).join("\n");
  }
  return JSON.stringify(said);
}

function inPart(part) {
  if (["text", "input_text", "output_text"].includes(part.type)) return inWords(part.text);
  const { type, ...rest } = part;
  const text = JSON.stringify(rest);
  return `[${type}] ${text.length <= 200 ? text : `${text.slice(0, 200)}…`}`;
}

export function inError(error) {
  return error && typeof error === "object" && "message" in error
    ? `${error.error ?? "Error"}: ${inWords(error.message)}`
    : inWords(error);
}

// A text as one part of a path: the twin of `keeve/server/api/paths.py`.
export const inPath = (text) => encodeURIComponent(/^\.\.?;*$/.test(text) ? `${text};` : text);

export const moment = (time) => `${time.slice(0, 10)} ${time.slice(11, 19)} UTC`;

// How a turn ended, by the fact that says so; null for any other.
export function inEnd(label, said) {
  const words = {
    "turn-done": said.limit ? `ended at its limit of ${inWords(said.limit)}` : "done",
    "turn-failed": `failed: ${inError(said.error)}`,
    "turn-interrupted": "interrupted",
  }[label];
  const tokens = said.usage?.total_tokens;
  return words === undefined ? null : words + (Number.isInteger(tokens) ? ` · ${tokens} tokens` : "");
}

// Of what is long a part is shown, and the rest on demand: see `said.py`.
export const isLong = (text) => text.length > 1500 || text.split("\n", 26).length > 25;
export const beginning = (text) => (isLong(text) ? `${text.slice(0, 300).split("\n", 8).join("\n")}…` : text);
