/** Every RPC of every service over HTTP: the tests of `services.test.ts`, with the other client. */

process.env["MNEME_TEST_OVER"] = "http";
await import("./services.test.js");

export {};
