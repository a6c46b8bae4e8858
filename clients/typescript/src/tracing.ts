import type { Interceptor } from "@connectrpc/connect";

/** What an application registered with the API of OpenTelemetry, as far as it is used here. */
interface Registered {
  readonly context?: { active(): unknown };
  readonly propagation?: {
    inject(context: unknown, carrier: Headers, setter: Setter): void;
  };
}

interface Setter {
  set(carrier: Headers, key: string, value: string): void;
}

// By which all copies of `@opentelemetry/api` in a process share what was registered with one.
const REGISTRY = Symbol.for("opentelemetry.js.api.1");
// Baggage, too, may be injected: what an application says to itself is not for the server.
const TRACE_CONTEXT = new Set(["traceparent", "tracestate"]);

const setter: Setter = {
  set: (headers, key, value) => {
    if (TRACE_CONTEXT.has(key.toLowerCase())) {
      headers.set(key, value);
    }
  },
};

/**
 * Sends the W3C trace context of the span that is current: what a call is part of. None is sent
 * where the application uses no OpenTelemetry, or another propagator.
 */
export const withTraceContext: Interceptor = (next) => (request) => {
  const { context, propagation } =
    ((globalThis as Record<symbol, unknown>)[REGISTRY] as Registered | undefined) ?? {};
  if (context && propagation) {
    propagation.inject(context.active(), request.header, setter);
  }
  return next(request);
};
