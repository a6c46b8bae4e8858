/** The end of a day and the beginning of the next: sleep, then wake up where the work stopped. */

import { createMneme } from "@mneme/client";

const mneme = createMneme();
const sessionId = "invoices-monday";

await mneme.startSession({ sessionId, agentId: "fixer", project: "invoices" });
await mneme.recordEvents({
  events: [{ sessionId, eventType: "message", text: "Moved the totals to integer cents." }],
});
await mneme.sleep({
  sessionId,
  progress: ["totals are summed in cents"],
  openTodos: [{ content: "convert the discounts too", priority: 1 }],
  decisions: [{ decision: "no floats for money", rationale: "they lose cents" }],
  files: ["invoices/totals.py"],
});

const woken = await mneme.wakeUp({ project: "invoices" });
for (const todo of woken.lastHandover?.openTodos ?? []) {
  console.log("still to do:", todo.content);
}
console.log(woken.text);

const { result } = await mneme.reflect({ analysis: "error_patterns", project: "invoices" });
if (result.case === "errorPatterns") {
  console.log(`${result.value.patterns.length} errors come back again and again`);
}
mneme.close();
