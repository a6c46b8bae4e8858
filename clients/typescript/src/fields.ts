import {
  create,
  type DescEnum,
  type DescField,
  type DescMessage,
  isMessage,
  type JsonValue,
  type MessageShape,
  ScalarType,
} from "@bufbuild/protobuf";
import {
  type Duration,
  DurationSchema,
  FieldMaskSchema,
  type Timestamp,
  TimestampSchema,
  timestampFromDate,
} from "@bufbuild/protobuf/wkt";
import { newUlid } from "./ulid.js";

type Given = Readonly<Record<string, unknown>>;

const HALF_A_CHARACTER = /\p{Surrogate}/u;

/**
 * Makes a message of plain values: a Date for a time, milliseconds for a duration, field names for
 * a field mask, plain objects for JSON and for nested messages, numbers for 64-bit integers, and an
 * enum's value or its name in lower case ("warning" is Severity.WARNING).
 *
 * @throws TypeError, RangeError: a value does not fit; the message names the field.
 */
export function messageOf<D extends DescMessage>(
  schema: D,
  fields: object,
  where = "",
): MessageShape<D> {
  if (isMessage(fields)) {
    if (!isMessage(fields, schema)) {
      throw new TypeError(
        `${where || schema.name}: expected ${schema.name}, got ${nameOf(fields)}`,
      );
    }
    return fields;
  }
  const message: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined || value === null) {
      continue;
    }
    const path = where ? `${where}.${name}` : name;
    const field = schema.field[name];
    if (field === undefined || field.oneof !== undefined) {
      message[name] = oneofValue(schema, name, value, path);
    } else {
      message[name] = fieldValue(field, value, path);
    }
  }
  return create(schema, message as never);
}

/**
 * The message with the ids that the client may choose, so that sending it again is harmless. The
 * given one is left as it is: its owner may give it again, and means another by that.
 */
export function withIds<M extends object>(message: M, paths: readonly (readonly string[])[]): M {
  return paths.reduce(withId<M>, message);
}

function withId<M extends object>(message: M, [name = "", ...rest]: readonly string[]): M {
  const value = (message as Record<string, unknown>)[name];
  if (rest.length === 0) {
    return { ...message, [name]: value || newUlid() };
  }
  if (value === undefined) {
    return message;
  }
  const filled = Array.isArray(value)
    ? value.map((item) => withId(item, rest))
    : withId(value as object, rest);
  return { ...message, [name]: filled };
}

function oneofValue(schema: DescMessage, name: string, value: unknown, path: string): unknown {
  const oneof = schema.oneofs.find((one) => one.localName === name);
  if (oneof === undefined) {
    const known = schema.members.map((member) => member.localName).join(", ");
    throw new TypeError(`${path}: ${schema.name} has no such field; it has ${known}`);
  }
  const given = value as { case?: string; value?: unknown };
  const field = oneof.fields.find((one) => one.localName === given.case);
  if (field === undefined) {
    const known = oneof.fields.map((one) => one.localName).join(", ");
    throw new TypeError(`${path}: give { case, value } with a case of ${known}`);
  }
  return { case: given.case, value: fieldValue(field, given.value, `${path}.${given.case}`) };
}

function fieldValue(field: DescField, value: unknown, path: string): unknown {
  switch (field.fieldKind) {
    case "list":
      if (!Array.isArray(value)) {
        throw new TypeError(`${path}: expected an array, got ${nameOf(value)}`);
      }
      return value.map((item, index) => singleValue(field, item, `${path}[${index}]`));
    case "map":
      return Object.fromEntries(
        Object.entries(objectOf(value, path)).map(([key, item]) => [
          key,
          singleValue(field, item, `${path}[${JSON.stringify(key)}]`),
        ]),
      );
    default:
      return singleValue(field, value, path);
  }
}

function singleValue(field: DescField, value: unknown, path: string): unknown {
  if (field.message) {
    return nestedValue(field.message, value, path);
  }
  return field.enum ? enumValue(field.enum, value, path) : scalarValue(field, value, path);
}

function nestedValue(schema: DescMessage, value: unknown, path: string): unknown {
  switch (schema.typeName) {
    case "google.protobuf.Timestamp":
      return value instanceof Date
        ? timestampOf(value, path)
        : object(TimestampSchema, value, path);
    case "google.protobuf.Duration":
      return typeof value === "number"
        ? durationOf(value, path)
        : object(DurationSchema, value, path);
    case "google.protobuf.FieldMask":
      return Array.isArray(value)
        ? create(FieldMaskSchema, { paths: value })
        : object(FieldMaskSchema, value, path);
    case "google.protobuf.Struct":
      return jsonOf(objectOf(value, path), path);
    case "google.protobuf.Value":
    case "google.protobuf.ListValue":
      return jsonOf(value, path);
    default:
      return object(schema, value, path);
  }
}

function object(schema: DescMessage, value: unknown, path: string): unknown {
  return messageOf(schema, objectOf(value, path), path);
}

function objectOf(value: unknown, path: string): Given {
  if (
    typeof value !== "object" ||
    value === null ||
    Array.isArray(value) ||
    value instanceof Date
  ) {
    throw new TypeError(`${path}: expected an object, got ${nameOf(value)}`);
  }
  return value as Given;
}

function timestampOf(value: Date, path: string): Timestamp {
  if (Number.isNaN(value.getTime())) {
    throw new RangeError(`${path}: an invalid Date is no time`);
  }
  return timestampFromDate(value);
}

function durationOf(ms: number, path: string): Duration {
  if (!(Math.abs(ms) <= Number.MAX_SAFE_INTEGER)) {
    throw new RangeError(`${path}: ${ms} milliseconds are no duration`);
  }
  const seconds = Math.trunc(ms / 1000);
  const nanos = Math.round((ms - seconds * 1000) * 1e6);
  // What is next to a whole second, as differences of clocks are, may come to be one.
  const carried = Math.trunc(nanos / 1e9);
  return create(DurationSchema, {
    seconds: BigInt(seconds + carried),
    nanos: nanos - carried * 1e9,
  });
}

function enumValue(schema: DescEnum, value: unknown, path: string): number {
  if (typeof value === "number") {
    return value;
  }
  if (typeof value !== "string") {
    throw new TypeError(`${path}: expected a name of ${schema.name}, got ${nameOf(value)}`);
  }
  const name = value.trim().toUpperCase().replaceAll("-", "_");
  const found = schema.values.find((one) => one.localName === name || one.name === name);
  if (found === undefined) {
    const known = schema.values.filter((one) => one.number !== 0);
    const names = known.map((one) => one.localName.toLowerCase()).join(", ");
    throw new RangeError(`${path}: ${JSON.stringify(value)} is none of ${names}`);
  }
  return found.number;
}

function scalarValue(field: DescField, value: unknown, path: string): unknown {
  switch (field.scalar) {
    case ScalarType.STRING:
      return textOf(checked(value, typeof value === "string", "text", path) as string, path);
    case ScalarType.BOOL:
      return checked(value, typeof value === "boolean", "true or false", path);
    case ScalarType.BYTES:
      return checked(value, value instanceof Uint8Array, "bytes", path);
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return checked(value, typeof value === "number", "a number", path);
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return fitting(BigInt.asIntN(64, wholeOf(value, path)), value, path);
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return fitting(BigInt.asUintN(64, wholeOf(value, path)), value, path);
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return Number(fitting(BigInt.asUintN(32, wholeOf(value, path)), value, path));
    default:
      return Number(fitting(BigInt.asIntN(32, wholeOf(value, path)), value, path));
  }
}

/** The text, which protobuf would write with U+FFFD in place of half a character. */
function textOf(text: string, path: string): string {
  if (HALF_A_CHARACTER.test(text)) {
    throw new RangeError(`${path}: text with half a surrogate pair is not Unicode`);
  }
  return text;
}

function wholeOf(value: unknown, path: string): bigint {
  if (typeof value === "bigint") {
    return value;
  }
  return BigInt(checked(value, Number.isSafeInteger(value), "a whole number", path) as number);
}

/** The value as its field holds it, which has to be the one that was given. */
function fitting(held: bigint, value: unknown, path: string): bigint {
  if (held !== BigInt(value as number | bigint)) {
    throw new RangeError(`${path}: ${value} is out of range`);
  }
  return held;
}

function checked<T>(value: T, fits: boolean, expected: string, path: string): T {
  if (!fits) {
    throw new TypeError(`${path}: expected ${expected}, got ${nameOf(value)}`);
  }
  return value;
}

const INEXACT = "does not fit a JSON number exactly; send it as text";

/** Whether a number stands where somebody wrote a whole number of more digits than it holds. */
function isRounded(value: number): boolean {
  // From 1e21 on JavaScript writes exponents: such a number counts nothing, and names nothing.
  return Number.isInteger(value) && Math.abs(value) > 2 ** 53 && Math.abs(value) < 1e21;
}

/** Free JSON; properties that are undefined are left out, as in JSON.stringify. */
function jsonOf(value: unknown, path: string): JsonValue {
  if (value === null || typeof value === "boolean") {
    return value;
  }
  if (typeof value === "string") {
    return textOf(value, path);
  }
  if (typeof value === "number") {
    if (!Number.isFinite(value)) {
      throw new RangeError(`${path}: ${value} is not a JSON number`);
    }
    if (isRounded(value)) {
      throw new RangeError(`${path}: ${value} ${INEXACT}`);
    }
    return value;
  }
  if (typeof value === "bigint") {
    if (value > BigInt(2 ** 53) || value < -BigInt(2 ** 53)) {
      throw new RangeError(`${path}: ${value} ${INEXACT}`);
    }
    return Number(value);
  }
  if (Array.isArray(value)) {
    return value.map((item, index) => jsonOf(item, `${path}[${index}]`));
  }
  if (typeof value === "object" && Object.prototype.toString.call(value) === "[object Object]") {
    return Object.fromEntries(
      Object.entries(value)
        .filter(([, item]) => item !== undefined)
        .map(([key, item]) => [textOf(key, path), jsonOf(item, `${path}.${key}`)]),
    );
  }
  throw new TypeError(`${path}: ${nameOf(value)} is not JSON; convert it first`);
}

function nameOf(value: unknown): string {
  if (value === null || typeof value !== "object") {
    return value === null ? "null" : `the ${typeof value} ${String(value)}`;
  }
  return isMessage(value) ? value.$typeName : (value.constructor?.name ?? "an object");
}
