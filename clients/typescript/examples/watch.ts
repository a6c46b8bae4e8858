/** Follow what agents do, and pick up after a break where the stream stopped. */

import { createMneme, MnemeError } from "@mneme/client";

const mneme = createMneme();

async function* steps(count: number) {
  for (let step = 1; step <= count; step++) {
    yield {
      id: `watched:${step}`,
      sessionId: "watched",
      eventType: "message" as const,
      text: `step ${step}`,
    };
  }
}

const { recordedCount } = await mneme.recordAll(steps(5));
console.log(`${recordedCount} events recorded`);

let cursor = "0";
let seen = 0;
while (seen < 5) {
  try {
    for await (const message of mneme.watchEvents({ sessionId: "watched", afterCursor: cursor })) {
      cursor = message.cursor;
      if (message.event) {
        seen += 1;
        console.log(message.event.eventType, message.event.text);
      }
      if (seen === 5) {
        break;
      }
    }
  } catch (error) {
    // The connection broke: watch again from the last cursor.
    if (!(error instanceof MnemeError && error.code === "UNAVAILABLE")) {
      throw error;
    }
  }
}
mneme.close();
