// The official OpenAI client for Node against ds4-server with the demo model.
import assert from "node:assert/strict";
import test from "node:test";
import OpenAI from "openai";

const QUESTION = "What is the capital of France?";
const ANSWER = "The capital of France is Paris.";
const model = "ds4-demo";
const client = new OpenAI({ baseURL: process.env.DS4_URL + "/v1", apiKey: process.env.DS4_KEY, maxRetries: 0 });
const weather = {
  type: "function",
  function: {
    name: "get_weather",
    description: "Get the current weather for a city.",
    parameters: {
      type: "object",
      properties: { city: { type: "string", description: "The name of the city" } },
      required: ["city"],
    },
  },
};

const ask = (more = {}) =>
  client.chat.completions.create({
    model, temperature: 0, thinking: { type: "disabled" }, messages: [{ role: "user", content: QUESTION }], ...more,
  });

test("chat", async () => {
  const reply = await ask();
  assert.equal(reply.choices[0].message.content, ANSWER);
  assert.equal(reply.choices[0].finish_reason, "stop");
});

test("stream", async () => {
  let text = "", usage = null;
  for await (const chunk of await ask({ stream: true, stream_options: { include_usage: true } })) {
    text += chunk.choices[0]?.delta.content ?? "";
    usage = chunk.usage ?? usage;
  }
  assert.equal(text, ANSWER);
  assert.equal(usage.completion_tokens, 9);
});

test("tools, there and back", async () => {
  const messages = [{ role: "user", content: "Tell me the weather in Tashkent." }];
  const first = await ask({ messages, tools: [weather] });
  const call = first.choices[0].message.tool_calls[0];
  assert.deepEqual(JSON.parse(call.function.arguments), { city: "Tashkent" });
  messages.push(first.choices[0].message, { role: "tool", tool_call_id: call.id, content: "14 degrees, cloudy" });
  const second = await ask({ messages, tools: [weather] });
  assert.equal(second.choices[0].message.content, "The weather in Tashkent is cloudy with 14 degrees.");
});

test("the stream helper puts calls together", async () => {
  const stream = client.chat.completions.stream({
    model, temperature: 0, thinking: { type: "disabled" }, tools: [weather],
    messages: [{ role: "user", content: "Tell me the weather in Tashkent." }],
  });
  const final = await stream.finalChatCompletion();
  assert.deepEqual(JSON.parse(final.choices[0].message.tool_calls[0].function.arguments), { city: "Tashkent" });
});

test("structured output", async () => {
  const schema = {
    type: "object", properties: { ok: { type: "boolean" } }, required: ["ok"], additionalProperties: false,
  };
  const reply = await ask({ response_format: { type: "json_schema", json_schema: { name: "x", schema } } });
  assert.equal(typeof JSON.parse(reply.choices[0].message.content).ok, "boolean");
});

test("responses", async () => {
  const reply = await client.responses.create({ model, input: QUESTION, temperature: 0 });
  assert.equal(reply.output_text, ANSWER);
  let text = "";
  for await (const event of await client.responses.create({ model, input: QUESTION, temperature: 0, stream: true })) {
    if (event.type === "response.output_text.delta") text += event.delta;
  }
  assert.equal(text, ANSWER);
});

test("errors name the field", async () => {
  await assert.rejects(ask({ n: 2 }), error => error instanceof OpenAI.BadRequestError && error.param === "n");
  const stranger = new OpenAI({ baseURL: process.env.DS4_URL + "/v1", apiKey: "wrong", maxRetries: 0 });
  await assert.rejects(stranger.models.list(), OpenAI.AuthenticationError);
});

/** How many clients the server has counted as gone. */
const gone = async () => {
  const reply = await fetch(process.env.DS4_URL + "/metrics", { headers: { authorization: `Bearer ${process.env.DS4_KEY}` } });
  return Number(/^ds4_answers_total\{ended="gone"\} (\d+)/m.exec(await reply.text())?.[1] ?? 0);
};

test("an abandoned request ends", async () => {
  const before = await gone();
  // Five hundred numbers take longer than the client waits.
  const schema = {
    type: "object", required: ["a"], additionalProperties: false,
    properties: { a: { type: "array", items: { enum: [1, 2] }, minItems: 500 } },
  };
  const controller = new AbortController();
  const pending = client.chat.completions.create(
    {
      model, temperature: 0, max_tokens: 3000, thinking: { type: "disabled" },
      messages: [{ role: "user", content: QUESTION }],
      response_format: { type: "json_schema", json_schema: { name: "x", schema } },
    },
    { signal: controller.signal },
  );
  setTimeout(() => controller.abort(), 100);
  await assert.rejects(pending, OpenAI.APIUserAbortError);
  for (const from = Date.now(); await gone() === before;) assert.ok(Date.now() - from < 10000, "it goes on");
  assert.equal(await gone(), before + 1);
  assert.equal((await ask()).choices[0].message.content, ANSWER);
});
