/** An agent's task: look up what is known, record the work, keep a lesson for the next time. */

import { createMneme } from "@mneme/client";

const mneme = createMneme();

const known = await mneme.recall({
  query: "how are amounts stored in the invoices service",
  scopes: ["lesson", "event"],
  limit: 3,
});
console.log(`${known.results.length} memories bear on the task`);

const { session } = await mneme.startSession({
  agentId: "fixer",
  project: "invoices",
  tags: ["bugfix"],
  metadata: { ticket: "INV-311" },
});
const sessionId = session?.id ?? "";

await mneme.recordEvents({
  events: [
    { sessionId, eventType: "message", text: "Totals on invoices are off by a cent." },
    {
      sessionId,
      eventType: "tool_error",
      name: "pytest",
      error: "test_total: 10.00 != 9.99",
      payload: { arguments: { path: "tests/test_totals.py" } },
      duration: 1850,
      timestamp: new Date(),
    },
  ],
});

await mneme.createLesson({
  title: "Amounts are integers of cents",
  content: "Sum cents and divide when printing; floats lose a cent in long invoices.",
  category: "bugfix",
  importance: "high",
  sourceSessionId: sessionId,
});
await mneme.endSession({ sessionId, status: "completed" });

const { results } = await mneme.recall({
  query: "a cent is missing on a bill",
  scopes: ["lesson"],
});
for (const result of results) {
  console.log(result.score.toFixed(2), result.text);
}
mneme.close();
