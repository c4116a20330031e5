// A whole session with the official TypeScript SDK's client, over stdio and over HTTP: node scenario.mjs EDGE URL
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [edge, url] = process.argv.slice(2);
const TOOLS = [
  "memory_candidates", "memory_confirm", "memory_forget", "memory_list", "memory_read", "memory_search",
  "memory_write", "task_state_get", "task_state_put",
];

async function connected(transport, name) {
  const client = new Client({ name, version: "1.0.0" });
  await client.connect(transport);
  return client;
}

function text(result) {
  return result.content.map((part) => part.text).join("");
}

async function scenario(client, name) {
  const call = (tool, given = {}) => client.callTool({ name: tool, arguments: given });
  assert.match(client.getInstructions(), /memory_search before you answer/);
  const { tools } = await client.listTools();
  assert.deepEqual(tools.map((tool) => tool.name).sort(), TOOLS);
  for (const tool of tools) assert.doesNotMatch(JSON.stringify(tool.inputSchema), /anyOf|oneOf|allOf/);

  const kept = await call("memory_write", { content: `${name} 把伞放在了门后的篮子里`, tags: [name], weight: 5 });
  const [uri] = kept.structuredContent.uris;
  assert.equal(kept.isError ?? false, false);
  const found = await call("memory_search", { query: `${name} 的伞在哪里`, top_k: 3 });
  assert.equal(found.structuredContent.memories[0].uri, uri);
  assert.match(text(found), /^\[相关记忆开始\]\n[^]*\n\[相关记忆结束\]$/);
  const deep = await call("memory_search", { query: "伞", deep: true, level: "detail", since: "2020-01-01", space: "public" });
  assert.ok(text(deep).includes(uri));
  assert.match((await call("memory_read", { uri })).structuredContent.text, /篮子/);
  assert.ok(text(await call("memory_list", { uri: "edge://public/note" })).includes(uri));

  const said = await client.readResource({ uri });
  assert.match(said.contents[0].text, /篮子/);
  assert.ok((await client.listResources()).resources.some((one) => one.uri === "edge://public"));
  assert.equal((await client.listResourceTemplates()).resourceTemplates.length, 1);
  const prompt = await client.getPrompt({ name: "session_start", arguments: { topic: `${name} 伞` } });
  assert.match(prompt.messages[0].content.text, /篮子/);

  assert.equal((await call("task_state_put", { key: name, value: "step 1" })).structuredContent.revision, 1);
  assert.equal((await call("task_state_get", { key: name })).structuredContent.value, "step 1");
  assert.ok((await call("task_state_get")).structuredContent.states.some((state) => state.key === name));
  assert.equal((await call("memory_candidates")).isError ?? false, false);

  // Failures are results, with the next step.
  for (const [tool, given, field] of [
    ["memory_search", { query: "x", top_k: 0 }, "top_k"],
    ["memory_write", { content: "x".repeat(5_000_000) }, "content"],
    ["memory_write", { content: "x", weight: NaN }, "weight"],
    ["memory_write", { content: "x", tags: Array(200).fill("t") }, "tags"],
    ["memory_confirm", { memory_id: uri }, "memory_id"],
    ["nothing", {}, "name"],
  ]) {
    const told = await call(tool, given);
    assert.equal(told.isError, true, tool);
    assert.equal(told.structuredContent.field, field);
  }

  // Many at once; one of them is given up.
  const stop = new AbortController();
  const dropped = client.callTool({ name: "memory_search", arguments: { query: "伞" } }, undefined, { signal: stop.signal });
  dropped.catch(() => {});
  stop.abort();
  const many = await Promise.all(Array.from({ length: 20 }, (_, n) => call("memory_search", { query: `${name} ${n}` })));
  assert.ok(many.every((one) => !one.isError));

  const would = await call("memory_forget", { memory_id: uri, dry_run: true });
  assert.match(text(would), /nothing is changed/);
  assert.equal((await call("memory_forget", { memory_id: uri })).isError ?? false, false);
  assert.equal((await call("memory_read", { uri })).structuredContent.error, "NOT_FOUND");
}

const overStdio = await connected(new StdioClientTransport({ command: edge, args: ["mcp"], env: process.env }), "ts-stdio");
const overHttp = await connected(new StreamableHTTPClientTransport(new URL(url)), "ts-http");
await Promise.all([scenario(overStdio, "甲"), scenario(overHttp, "乙")]);
await Promise.all([overStdio.close(), overHttp.close()]);
console.log("the TypeScript SDK's client did its scenario over stdio and over HTTP");
