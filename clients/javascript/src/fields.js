/**
 * Read records strictly: an unknown field could change the promise.
 *
 * Messages say what was expected; `section` says where. `sfumato verify` in Python says more about a file.
 */
import { InvalidSurvey, InvalidSymbols, SfumatoError } from "./errors.js";

/** The largest number of symbols, and of reports. */
export const MAX_SIZE = 2 ** 31;

/** The largest number of symbols of a context that needs memory for each, and of outputs of such a code. */
const MAX_IN_MEMORY = 2 ** 24;

/** Throw `InvalidSurvey` unless the condition is true. */
export function expect(condition, expected) {
  if (!condition) throw new InvalidSurvey(`expected ${expected}`);
}

/** Throw before anything allocates more memory than a device has. */
export function requireMemory(count, limit = MAX_IN_MEMORY) {
  expect(count <= limit, `at most ${limit} symbols`);
}

/** Throw if there is an unknown option: a misspelt name must not silently drop a pin or a limit. */
export function refuseUnknown(options) {
  const [name] = Object.keys(options);
  if (name) throw new InvalidSymbols(`unknown option ${name}`);
}

/** Call `read`, and name this part of the survey in its errors. */
export function section(name, read) {
  try {
    return read();
  } catch (problem) {
    throw new InvalidSurvey(`${name}: ${problem instanceof SfumatoError ? problem.message : "malformed"}`);
  }
}

/** Return the record if it is an object with exactly these fields. */
export function requireFields(record, ...known) {
  const names = Object(record) === record ? Object.keys(record) : [];
  expect(
    names.length === known.length && known.every((field) => names.includes(field)),
    `exactly the fields ${known}`,
  );
  return record;
}

/** Return the reader for a record's kind. */
export function readerOf(record, readers) {
  const kind = record?.kind;
  expect(typeof kind === "string" && Object.hasOwn(readers, kind), `one of the kinds ${Object.keys(readers)}`);
  return readers[kind];
}

/** Return the number if it is an integer from `min` to `max`. */
export function requireInteger(number, min, max) {
  expect(Number.isSafeInteger(number) && number >= min && number <= max, `an integer from ${min} to ${max}`);
  return number;
}

/** Parse a number of words, which is text because it may exceed 2^53. */
export function parseCount(text) {
  expect(typeof text === "string" && /^(0|[1-9]\d{0,39})$/.test(text), "a number of words, as text");
  return BigInt(text);
}

/** Return the record if it is a list, of this length if there is one. */
export function list(record, length = record?.length) {
  expect(Array.isArray(record) && record.length === length, `a list of ${length}`);
  return record;
}
