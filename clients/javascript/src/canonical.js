/**
 * Canonical JSON: one text for one meaning, so that a hash of it can name a promise.
 *
 * UTF-8, keys sorted by code point, no white space, whole numbers below 2^53 alone, strings in Unicode's NFC form.
 */
import { expect } from "./fields.js";

const HALF_A_CHARACTER = /[\ud800-\udfff]/u; // with the flag u, whole characters above U+FFFF do not match

/** The canonical text of what `JSON.parse` returned. (`normalize()` means NFC.) */
export function canonicalText(data) {
  if (typeof data === "string") return quoted(data);
  if (typeof data === "number") expect(Number.isSafeInteger(data), "whole numbers below 2^53");
  if (Object(data) !== data) return `${data}`; // a number, true, false or null
  if (Array.isArray(data)) return `[${data.map(canonicalText)}]`;
  const pairs = Object.keys(data).map((key) => [key.normalize(), data[key]]);
  // Strings of JavaScript compare by halves of characters; bytes of UTF-8 are in the order of code points.
  pairs.sort(([a], [b]) => (hex(utf8(a)) < hex(utf8(b)) ? -1 : 1));
  expect(!pairs.some(([key], i) => key === pairs[i - 1]?.[0]), "keys that differ");
  return `{${pairs.map(([key, value]) => `${quoted(key)}:${canonicalText(value)}`)}}`;
}

function quoted(text) {
  expect(!HALF_A_CHARACTER.test(text), "text that UTF-8 can hold");
  return JSON.stringify(text.normalize());
}

/** A large array of integers below `size`, from base64 of little-endian 32-bit words. */
export function unpackedU32(text, size) {
  const raw = atob(text);
  // Encoded again, because decoders forgive white space and missing padding.
  expect(raw.length % 4 === 0 && btoa(raw) === text, "base64 of 32-bit integers");
  const view = new DataView(Uint8Array.from(raw, (byte) => byte.charCodeAt(0)).buffer);
  const numbers = new Uint32Array(raw.length / 4).map((_, i) => view.getUint32(4 * i, true));
  expect(
    numbers.every((number) => number < size),
    `numbers below ${size}`,
  );
  return numbers;
}

/** The bytes of a text in UTF-8. */
export const utf8 = (text) => new TextEncoder().encode(text);

/** Bytes as hexadecimal digits. */
export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** The bytes that hexadecimal digits stand for. */
export const unhex = (text) => Uint8Array.from(text.match(/../g), (digits) => parseInt(digits, 16));
