// OpenAI's own package for JavaScript, as anybody would use it; tells what came as JSON.
import OpenAI from "openai";

const client = new OpenAI();
const first = await client.responses.create({ model: "model", input: "one" });
const second = await client.responses.create({ model: "model", input: "two", previous_response_id: first.id });
const other = await client.responses.create({ model: "model", input: "three", previous_response_id: first.id });
let streamed = "";
for await (const event of await client.responses.create({ model: "model", input: "four", stream: true }))
  if (event.type === "response.output_text.delta") streamed += event.delta;
const talk = await client.conversations.create({ items: [{ type: "message", role: "user", content: "before" }] });
await client.responses.create({ model: "model", input: "five", conversation: talk.id });
const items = [];
for await (const item of client.conversations.items.list(talk.id)) items.push(item.type);
const chat = await client.chat.completions.create({ model: "model", messages: [{ role: "user", content: "six" }] });
let background = await client.responses.create({ model: "model", input: "seven", background: true });
while (["queued", "in_progress"].includes(background.status)) background = await client.responses.retrieve(background.id);
const said = [first, second, other].map((response) => response.output_text);
console.log(JSON.stringify([...said, streamed, items, chat.choices[0].message.content, background.output_text]));
