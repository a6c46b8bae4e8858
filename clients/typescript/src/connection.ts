import { readFileSync } from "node:fs";
import type { SecureClientSessionOptions } from "node:http2";
import { BlockList, connect, isIP } from "node:net";
import type { Interceptor } from "@connectrpc/connect";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import type { Connection } from "./caller.js";
import { type Caller, identified, tenantOf } from "./caller-headers.js";
import { ConfigurationError } from "./errors.js";
import { Freshness } from "./freshness.js";
import { withTraceContext } from "./tracing.js";
import { VERSION } from "./version.js";

export const DEFAULT_ADDRESS = "127.0.0.1:50051";
const SCHEMES: Readonly<Record<string, boolean>> = {
  grpc: false,
  http: false,
  grpcs: true,
  https: true,
};
const TRUE = ["1", "true", "yes", "on"];
const FALSE = ["", "0", "false", "no", "off"];
const MAX_MESSAGE_BYTES = 64 * 1024 * 1024;
// Notices a peer that vanished while a stream waits. The server allows a ping every ten seconds.
const PING_INTERVAL_MS = 60_000;
const PING_TIMEOUT_MS = 20_000;

/** How to check the server's certificate, and what to show it. */
export interface TlsOptions {
  /** File of the certificates to trust; default: those that Node.js trusts. */
  readonly ca?: string;
  /** File of the client's own certificate chain (mutual TLS). */
  readonly certificate?: string;
  /** File of its private key. */
  readonly key?: string;
  /** The name that the server's certificate carries, where it is not the address's. */
  readonly serverName?: string;
}

/** Where the server is and how to reach it. */
export interface ConnectionOptions {
  /**
   * HOST, HOST:PORT, `unix:PATH`, or with `grpcs://` for TLS; default MNEME_ADDRESS, else
   * 127.0.0.1:50051.
   */
  readonly address?: string | undefined;
  /** The secret "mn_…"; default MNEME_API_KEY. */
  readonly apiKey?: string | undefined;
  /**
   * True checks the server against the certificates that Node.js trusts, a path against that
   * file, TlsOptions say more; default MNEME_TLS (1, or a path), else plaintext.
   */
  readonly tls?: boolean | string | TlsOptions | undefined;
  /** Allow an API key over plaintext to another machine; default MNEME_INSECURE. */
  readonly insecure?: boolean | undefined;
  /**
   * Whether what is read shows what this client wrote before, whichever server answers: a call
   * carries the newest `consistencyToken`. Default: true.
   */
  readonly readOwnWrites?: boolean | undefined;
  /**
   * The tenant that the key opens, where a balancer spreads calls over several servers: it is sent
   * as `x-mneme-tenant`, so that the tenant's calls meet the same one. That makes them faster, and
   * nothing else: which tenant answers, the key says alone. Default: MNEME_TENANT.
   */
  readonly tenant?: string | undefined;
}

interface Endpoint {
  readonly address: string;
  readonly host: string;
  readonly socket?: string;
  readonly tls?: boolean | undefined;
}

/**
 * Joins options and environment. Nothing is sent before the first call.
 *
 * @throws ConfigurationError: they cannot be used.
 */
export function connectionOf(options: ConnectionOptions): Connection {
  const { env } = process;
  const endpoint = endpointOf(options.address || env["MNEME_ADDRESS"] || DEFAULT_ADDRESS);
  const tls = tlsOf(options.tls, endpoint, env["MNEME_TLS"] ?? "");
  const key = (options.apiKey ?? env["MNEME_API_KEY"] ?? "").trim();
  const word = (env["MNEME_INSECURE"] ?? "").trim().toLowerCase();
  const insecure = options.insecure ?? TRUE.includes(word);
  if (/[^\x21-\x7e]/.test(key)) {
    throw new ConfigurationError("the API key holds characters that no key has; copy it again");
  }
  if (key && !tls && !isLocal(endpoint) && !insecure) {
    throw new ConfigurationError(
      `the API key would cross the network to ${endpoint.address} in the clear: use TLS ` +
        "(tls: true or MNEME_TLS=1), or say that the network is trusted " +
        "(insecure: true or MNEME_INSECURE=1)",
    );
  }
  const baseUrl = `${tls ? "https" : "http"}://${endpoint.socket ? "localhost" : endpoint.address}`;
  const freshness = new Freshness(options.readOwnWrites ?? true);
  const caller = { key, tenant: tenantOf(options.tenant ?? env["MNEME_TENANT"]) };
  return open(endpoint.address, baseUrl, caller, sessionOptions(endpoint, tls), freshness);
}

/** The connection to a server, which is made with the first call. */
export function open(
  address: string,
  baseUrl: string,
  caller: Caller,
  options: SecureClientSessionOptions,
  freshness: Freshness,
): Connection {
  const session = new Http2SessionManager(
    baseUrl,
    { pingIntervalMs: PING_INTERVAL_MS, pingTimeoutMs: PING_TIMEOUT_MS },
    options,
  );
  return {
    address,
    freshness,
    transport: createGrpcTransport({
      baseUrl,
      sessionManager: session,
      interceptors: [named, identified(caller), withTraceContext, freshness.interceptor],
      readMaxBytes: MAX_MESSAGE_BYTES,
      writeMaxBytes: MAX_MESSAGE_BYTES,
    }),
    apart: () => open(address, baseUrl, caller, options, freshness),
    close: () => session.abort(),
  };
}

/** Adds the client's name to every call. */
const named: Interceptor = (next) => (request) => {
  request.header.set("user-agent", `mneme-typescript/${VERSION}`);
  return next(request);
};

function endpointOf(given: string): Endpoint {
  const text = given.trim();
  if (text.startsWith("unix:")) {
    const socket = text.slice("unix:".length).replace(/^\/\/(?=\/)/, "");
    if (!socket) {
      throw new ConfigurationError(`${JSON.stringify(given)} is not an address: give unix:PATH`);
    }
    return { address: text, host: "", socket };
  }
  const [, scheme = "", rest = text] = /^([a-z]+):\/\/(.*)$/i.exec(text) ?? [];
  const tls = scheme ? SCHEMES[scheme.toLowerCase()] : undefined;
  const bare = scheme ? rest.replace(/\/+$/, "") : rest;
  const parts = /^(?:\[([^\]]+)\]|([^:\s/[\]]+))(?::(\d+))?$/.exec(bare);
  // More than one colon without brackets is an IPv6 address without a port.
  const host = isIP(bare) === 6 ? bare : (parts?.[1] ?? parts?.[2]);
  if ((scheme && tls === undefined) || !host) {
    throw new ConfigurationError(
      `${JSON.stringify(given)} is not an address: give HOST or HOST:PORT`,
    );
  }
  const port = Number((isIP(bare) === 6 ? undefined : parts?.[3]) ?? (tls ? 443 : 50051));
  if (port < 1 || port > 65535) {
    throw new ConfigurationError(
      `${JSON.stringify(given)} is not an address: the port is a number from 1 to 65535`,
    );
  }
  return { address: `${host.includes(":") ? `[${host}]` : host}:${port}`, host, tls };
}

/** Whether what is sent stays on this machine. */
function isLocal({ host, socket }: Endpoint): boolean {
  if (socket !== undefined || host === "localhost" || host.endsWith(".localhost")) {
    return true;
  }
  const family = isIP(host);
  if (family === 0) {
    return false;
  }
  const loopback = new BlockList();
  loopback.addSubnet("127.0.0.0", 8, "ipv4");
  loopback.addAddress("::1", "ipv6");
  return loopback.check(host, family === 6 ? "ipv6" : "ipv4");
}

/** The TLS options; undefined for plaintext. The option wins over the address, that over env. */
function tlsOf(
  option: ConnectionOptions["tls"],
  endpoint: Endpoint,
  setting: string,
): TlsOptions | undefined {
  let tls = option ?? endpoint.tls;
  if (tls === undefined) {
    const word = setting.trim().toLowerCase();
    tls = [...TRUE, ...FALSE].includes(word) ? TRUE.includes(word) : setting.trim();
  }
  if (typeof tls === "object") {
    return tls;
  }
  if (typeof tls === "string") {
    return { ca: tls };
  }
  return tls ? {} : undefined;
}

function sessionOptions(
  endpoint: Endpoint,
  tls: TlsOptions | undefined,
): SecureClientSessionOptions {
  const { socket } = endpoint;
  if (socket !== undefined) {
    if (tls) {
      throw new ConfigurationError("a unix socket is reached without TLS: leave it out");
    }
    return { createConnection: () => connect(socket) };
  }
  if (!tls) {
    return {};
  }
  if (Boolean(tls.certificate) !== Boolean(tls.key)) {
    throw new ConfigurationError("mutual TLS needs both a certificate and its key");
  }
  return {
    ...(tls.ca !== undefined && { ca: read(tls.ca) }),
    ...(tls.certificate !== undefined && { cert: read(tls.certificate) }),
    ...(tls.key !== undefined && { key: read(tls.key) }),
    ...(tls.serverName !== undefined && { servername: tls.serverName }),
  };
}

function read(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    throw new ConfigurationError(`TLS: cannot read ${path}: ${(error as Error).message}`, {
      cause: error,
    });
  }
}
