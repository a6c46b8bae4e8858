// A host written with another library: the TypeScript SDK of MCP. It connects as told, lists what
// there is, calls what it is given, and prints everything as one JSON document.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const plan = JSON.parse(process.argv[2]);
const transport = plan.url
  ? new StreamableHTTPClientTransport(new URL(plan.url), {
      requestInit: { headers: { Authorization: `Bearer ${plan.key}` } },
    })
  : new StdioClientTransport({ command: plan.command, args: plan.args, env: plan.env });

const client = new Client({ name: "other-host", version: "1.0.0" });
await client.connect(transport);
const { tools } = await client.listTools();
const { resources } = await client.listResources();
const { prompts } = await client.listPrompts();
const results = [];
const progress = [];
for (const [name, args] of plan.calls) {
  results.push(
    await client.callTool({ name, arguments: args }, undefined, {
      onprogress: (heard) => progress.push(heard),
    }),
  );
}
await client.close();
console.log(
  JSON.stringify({
    server: client.getServerVersion(),
    instructions: client.getInstructions(),
    tools: tools.map((tool) => tool.name),
    resources: resources.map((resource) => resource.uri),
    prompts: prompts.map((prompt) => prompt.name),
    results,
    progress,
  }),
);
