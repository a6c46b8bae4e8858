import {
  createRegistry,
  type JsonObject,
  type Message,
  toJson as toProtobufJson,
} from "@bufbuild/protobuf";
import * as api from "./gen/index.js";

const registry = createRegistry(
  ...Object.values(api).filter(
    (one) => typeof one === "object" && "kind" in one && one.kind === "file",
  ),
);

/**
 * A message of the API as JSON: times as RFC 3339 text, durations as "1.5s", enums by name, 64-bit
 * integers as text (JSON's numbers do not hold them all), free JSON as it is.
 *
 * @param message any message of the API
 * @param options `defaults`: include fields that hold their default (default true)
 */
export function toJson(
  message: Message,
  options: { readonly defaults?: boolean } = {},
): JsonObject {
  const schema = registry.getMessage(message.$typeName);
  if (schema === undefined) {
    throw new TypeError(`${message.$typeName} is no message of Mneme's API`);
  }
  const { defaults = true } = options;
  return toProtobufJson(schema, message, { registry, alwaysEmitImplicit: defaults }) as JsonObject;
}
