import type { Interceptor } from "@connectrpc/connect";
import { ConfigurationError } from "./errors.js";

/** Who calls. */
export interface Caller {
  /** The API key; empty: none is sent. */
  readonly key: string;
  /** The tenant that it opens, for balancers; empty: none is sent. */
  readonly tenant: string;
}

/** Adds to every call who calls. */
export function identified({ key, tenant }: Caller): Interceptor {
  return (next) => (request) => {
    if (key) {
      request.header.set("authorization", `Bearer ${key}`);
    }
    if (tenant) {
      request.header.set("x-mneme-tenant", tenant);
    }
    return next(request);
  };
}

/**
 * A tenant's id as a header can hold it.
 *
 * @throws ConfigurationError: it is none.
 */
export function tenantOf(given: string | undefined): string {
  const tenant = (given ?? "").trim();
  if (/[^\x21-\x7e]/.test(tenant)) {
    throw new ConfigurationError(
      `${JSON.stringify(given)} holds characters that no tenant's id has`,
    );
  }
  return tenant;
}
