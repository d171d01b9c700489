/**
 * Canonical JSON: equal data have equal text, so a hash of the text can name a promise.
 *
 * UTF-8, keys sorted by code point, no white space, only integers below 2^53 as numbers, strings in Unicode's NFC form.
 */
import { expect } from "./fields.js";

const LONE_SURROGATE = /[\ud800-\udfff]/u; // with the flag u, complete surrogate pairs do not match

/** Return the canonical text of what `JSON.parse` returned. (`normalize()` means NFC.) */
export function canonicalText(data) {
  if (typeof data === "string") return quote(data);
  if (typeof data === "number") expect(Number.isSafeInteger(data), "integers below 2^53");
  if (Object(data) !== data) return `${data}`; // a number, true, false or null
  if (Array.isArray(data)) return `[${data.map(canonicalText)}]`;
  const pairs = Object.keys(data).map((key) => [key.normalize(), data[key]]);
  // JavaScript compares strings by UTF-16 code units; UTF-8 bytes sort by code point.
  pairs.sort(([a], [b]) => (hex(utf8(a)) < hex(utf8(b)) ? -1 : 1));
  expect(!pairs.some(([key], i) => key === pairs[i - 1]?.[0]), "distinct keys");
  return `{${pairs.map(([key, value]) => `${quote(key)}:${canonicalText(value)}`)}}`;
}

function quote(text) {
  expect(!LONE_SURROGATE.test(text), "valid Unicode text");
  return JSON.stringify(text.normalize());
}

/** Parse an array of integers below `size` from base64 of little-endian 32-bit words. */
export function unpackU32(text, size) {
  const raw = atob(text);
  // Encode again to compare: decoders accept white space and missing padding.
  expect(raw.length % 4 === 0 && btoa(raw) === text, "base64 of 32-bit integers");
  const view = new DataView(Uint8Array.from(raw, (byte) => byte.charCodeAt(0)).buffer);
  const numbers = new Uint32Array(raw.length / 4).map((_, i) => view.getUint32(4 * i, true));
  expect(
    numbers.every((number) => number < size),
    `numbers below ${size}`,
  );
  return numbers;
}

/** Encode text in UTF-8. */
export const utf8 = (text) => new TextEncoder().encode(text);

/** Encode bytes as hexadecimal digits. */
export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** Decode hexadecimal digits to bytes. */
export const unhex = (text) => Uint8Array.from(text.match(/../g), (digits) => parseInt(digits, 16));
