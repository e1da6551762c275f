// Server-sent events over fetch: read as they come, and followed over whatever interrupts them.
// A stream that ends with an error, since its session is deleted or damaged, is not asked for again.
// The one rule: a place in a stream is the id of its last event. From there on another request goes on.

export class Refused extends Error {
  constructor(status, error) {
    super(error.message);
    this.status = status;
    this.code = error.code;
    this.remedy = error.remedy;
  }
}

// The events of one answer: {event, id, data}. Raises `Refused` for an answer that is an error.
export async function* eventsOf(answer) {
  if (!answer.ok) {
    const said = await answer.json().catch(() => ({ error: { message: `the server answers ${answer.status}` } }));
    throw new Refused(answer.status, said.error);
  }
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop();
      for (const part of parts) {
        const event = { event: "message", id: "", data: null };
        for (const line of part.split("\n")) {
          const at = line.indexOf(": ");
          if (at > 0) event[line.slice(0, at)] = line.slice(at + 2);
        }
        if (event.data !== null) yield { ...event, data: JSON.parse(event.data) };
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

export const ENDED = ["deleted", "no_such_session", "session_damaged"];

const pause = (ms) => new Promise((done) => setTimeout(done, ms));

// The page is looked at, or will be.
function shown() {
  if (!document.hidden) return Promise.resolve();
  return new Promise((done) => document.addEventListener("visibilitychange", done, { once: true }));
}

// Follows a stream from `cursor` on, for as long as the page is looked at, and goes on when it is again: browsers have
// few connections, and all pages of a server share them. `told` gets each event; `state` what is to be known of it.
export async function follow(address, { cursor, told, state = () => {}, until = new AbortController().signal }) {
  let wait = 500;
  while (!until.aborted) {
    await shown();
    const stop = new AbortController();
    const end = () => stop.abort();
    const hidden = () => document.hidden && end();
    until.addEventListener("abort", end);
    document.addEventListener("visibilitychange", hidden);
    try {
      const headers = { accept: "text/event-stream", ...(cursor ? { "last-event-id": cursor } : {}) };
      const answer = await fetch(address, { headers, signal: stop.signal });
      for await (const event of eventsOf(answer)) {
        wait = 500;
        state("live");
        if (event.id) cursor = event.id;
        if (event.event === "stopping") break;
        if (event.event === "error" && ENDED.includes(event.data.error.code)) {
          state("ended", new Refused(0, event.data.error));
          return;
        }
        told(event);
      }
    } catch (error) {
      if (error instanceof Refused && error.status !== 503 && error.status !== 429) {
        state("ended", error);
        return;
      }
    } finally {
      until.removeEventListener("abort", end);
      document.removeEventListener("visibilitychange", hidden);
    }
    if (until.aborted || document.hidden) continue;
    state("away");
    await pause(wait);
    wait = Math.min(wait * 2, 10000);
  }
}
