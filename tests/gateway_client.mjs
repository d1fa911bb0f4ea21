// openai-node, as it comes from the registry, against a gateway: gateway_client.mjs BASE_URL KEY. Prints one JSON object.
import OpenAI from "openai";

const [baseURL, apiKey] = process.argv.slice(2);
const client = new OpenAI({ baseURL, apiKey, maxRetries: 0, timeout: 60_000 });
const messages = [{ role: "user", content: "hi" }];
const out = {};

const whole = await client.chat.completions.create({ model: "mock", messages });
out.whole = { text: whole.choices[0].message.content, tokens: whole.usage.completion_tokens };

const gather = async (stream) => {
  let text = "", usage = null, chunks = 0;
  for await (const chunk of stream) {
    chunks++;
    text += chunk.choices[0]?.delta?.content ?? "";
    usage = chunk.usage ?? usage;
  }
  return { text, usage, chunks };
};
out.stream = await gather(await client.chat.completions.create({ model: "mock", messages, stream: true }));
out.usage = await gather(
  await client.chat.completions.create({ model: "mock", messages, stream: true, stream_options: { include_usage: true } }));

const tools = [{ type: "function", function: { name: "mock_tool", parameters: { type: "object", properties: { words: { type: "string" } } } } }];
const helper = client.chat.completions.stream({ model: "mock", messages, tools });
out.helper = (await helper.finalChatCompletion()).choices[0].message.content;

const raw = await client.chat.completions.create({ model: "mock", messages }).withResponse();
out.headers = Object.fromEntries([...raw.response.headers].filter(([name]) => name.startsWith("x-")));
out.request_id = raw.data._request_id;

out.text = (await client.completions.create({ model: "mock", prompt: "hi" })).choices[0].text;
const embedded = await client.embeddings.create({ model: "mock-embed", input: ["a", "b"] });
out.embedded = embedded.data.map((each) => each.embedding.length);
out.local = (await client.embeddings.create({ model: "all-MiniLM-L6-v2", input: "a" })).data[0].embedding.length;
out.models = [];
for await (const model of client.models.list()) out.models.push(model.id);

const refusal = async (call) => {
  try {
    await call();
    return null;
  } catch (error) {
    return { kind: error.constructor.name, status: error.status, code: error.code, param: error.param, message: error.message };
  }
};
out.unknown = await refusal(() => client.chat.completions.create({ model: "nothing", messages }));
out.wrong_key = await refusal(() => new OpenAI({ baseURL, apiKey: "wrong", maxRetries: 0 }).chat.completions.create({ model: "mock", messages }));

const left = await client.chat.completions.create({ model: "mock", messages, stream: true });
for await (const _ of left) break; // and hangs up
console.log(JSON.stringify(out));
