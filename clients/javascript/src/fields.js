/**
 * Reading records: exactly the fields that are known, because a promise that is half understood is no promise.
 *
 * Messages say what was expected; `section` says where. The Python command `sfumato verify` says more about a file.
 */
import { InvalidSurvey, InvalidSymbols, SfumatoError } from "./errors.js";

/** The most symbols, and the most reports, that there may be. */
export const LARGEST = 2 ** 31;

/** The most symbols of a context that needs memory for each, and the most outputs of a code that does. */
const LARGEST_IN_MEMORY = 2 ** 24;

/** Throw unless it holds. */
export function expect(holds, expected) {
  if (!holds) throw new InvalidSurvey(`expected ${expected}`);
}

/** Throw before allocating more memory than a device has. */
export function requireMemory(count, most = LARGEST_IN_MEMORY) {
  expect(count <= most, `at most ${most} symbols`);
}

/** Throw if any option is left over: a misspelt name must not silently drop a pin or a limit. */
export function refuseUnknown(options) {
  const [name] = Object.keys(options);
  if (name) throw new InvalidSymbols(`unknown option ${name}`);
}

/** Call `read`; every error in it is about this part of the survey. */
export function section(name, read) {
  try {
    return read();
  } catch (problem) {
    throw new InvalidSurvey(`${name}: ${problem instanceof SfumatoError ? problem.message : "malformed"}`);
  }
}

/** The record, if it is an object with exactly these fields. */
export function fieldsOf(record, ...known) {
  const found = Object(record) === record ? Object.keys(record) : [];
  expect(
    found.length === known.length && known.every((field) => found.includes(field)),
    `the fields ${known}, and no others`,
  );
  return record;
}

/** What a table of readers by kind has for this record. */
export function readerOf(record, readers) {
  const kind = record?.kind;
  expect(typeof kind === "string" && Object.hasOwn(readers, kind), `one of the kinds ${Object.keys(readers)}`);
  return readers[kind];
}

/** A whole number from `least` to `most`. */
export function wholeNumber(number, least, most) {
  expect(Number.isSafeInteger(number) && number >= least && number <= most, `a whole number from ${least} to ${most}`);
  return number;
}

/** A number of words, written as text because it may pass 2^53. */
export function count(text) {
  expect(typeof text === "string" && /^(0|[1-9]\d{0,39})$/.test(text), "a number of words, as text");
  return BigInt(text);
}

/** A list, of a given length if there is one. */
export function list(record, length = record?.length) {
  expect(Array.isArray(record) && record.length === length, `a list of ${length}`);
  return record;
}
