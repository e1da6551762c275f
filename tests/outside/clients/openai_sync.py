"""OpenAI's own package, as anybody would use it: run in an environment of its own, and tells what came as JSON."""

import json

import openai

client = openai.OpenAI()
first = client.responses.create(model="model", input="one")
second = client.responses.create(model="model", input="two", previous_response_id=first.id)
other = client.responses.create(model="model", input="three", previous_response_id=first.id)
with client.responses.stream(model="model", input="four") as stream:
    streamed = "".join(event.delta for event in stream if event.type == "response.output_text.delta")
talk = client.conversations.create(items=[{"type": "message", "role": "user", "content": "before"}])
client.responses.create(model="model", input="five", conversation=talk.id)
items = [item.type for item in client.conversations.items.list(talk.id)]
chat = client.chat.completions.create(model="model", messages=[{"role": "user", "content": "six"}])
background = client.responses.create(model="model", input="seven", background=True)
while background.status in ("queued", "in_progress"):
    background = client.responses.retrieve(background.id)
said = [first.output_text, second.output_text, other.output_text, streamed, items, chat.choices[0].message.content]
print(json.dumps([*said, background.output_text]))
