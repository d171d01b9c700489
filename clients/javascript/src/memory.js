/**
 * Memory without values: a device derives everything about an answer from one secret.
 *
 * The secret has 32 bytes, F is the survey's fingerprint as 32 bytes, a symbol is 4 bytes, little-endian:
 *
 *     words of an answer   AES-256 under the secret of SHA-256("sfumato/1/report" ‖ F ‖ symbol)[:16]
 *     batch identifier     SHA-256("sfumato/1/batch" ‖ secret ‖ F ‖ period)[:16]
 *     token of a value     SHA-256("sfumato/1/value" ‖ secret ‖ F ‖ symbol)[:16]
 *     tag of the secret    SHA-256("sfumato/1/secret" ‖ secret)[:16]
 *
 * Anyone who has the secret can try every symbol and see which one fits a report or a token.
 */
import { hex, unhex, utf8 } from "./canonical.js";
import { sha256, wordsAt } from "./words.js";

/** Derive the two words of an answer. */
export async function deriveWords(secret, fingerprint, symbol) {
  return wordsAt(secret, await digest("report", unhex(fingerprint), u32(symbol)));
}

/** Return a device's batch identifier; the period is "" for a survey answered once. */
export async function batchId(secret, fingerprint, period) {
  return hex(await digest("batch", secret, unhex(fingerprint), utf8(period)));
}

/** Return a token that tells a value used before from a new one. It reveals nothing without the secret. */
export async function tokenOf(secret, fingerprint, symbol) {
  return hex(await digest("value", secret, unhex(fingerprint), u32(symbol)));
}

/** Return a tag that distinguishes secrets. */
export async function secretTag(secret) {
  return hex(await digest("secret", secret));
}

async function digest(purpose, ...pieces) {
  return (await sha256(utf8(`sfumato/1/${purpose}`), ...pieces)).subarray(0, 16);
}

const u32 = (symbol) => Uint8Array.of(symbol, symbol >>> 8, symbol >>> 16, symbol >>> 24);
