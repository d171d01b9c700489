/**
 * Words: uniform 64-bit integers, two for each person.
 *
 * They come from the platform's cryptographic generator, or, for a remembered answer, from AES-256 under the device's
 * secret. There is no third source, and none that goes on without entropy.
 */
import { EntropyUnavailable } from "./errors.js";

let lastUnused; // the beginning of the unused half of the last draw

/** Fresh words, an even number of them, at most 4,096. Twice as many are drawn, which a platform does up to 8,192. */
export function freshWords(count) {
  const drawn = new BigUint64Array(2 * count);
  try {
    crypto.getRandomValues(drawn);
  } catch {
    throw new EntropyUnavailable("there is no randomness; nothing was privatised");
  }
  // A stuck source repeats itself, within a draw or from one to the next; a working one once in 2^128 draws.
  const [start, unused] = [`${drawn[0]},${drawn[1]}`, `${drawn[count]},${drawn[count + 1]}`];
  const stuck = unused === start || unused === lastUnused;
  lastUnused = unused;
  if (stuck) throw new EntropyUnavailable("randomness repeats itself; nothing was privatised");
  return drawn.slice(0, count);
}

/** The two words at a position of 16 bytes under a key of 32: AES-256 of that one block. */
export async function wordsAt(key, position) {
  const name = "AES-CTR";
  const imported = await subtle().importKey("raw", key, name, false, ["encrypt"]);
  // Counter mode adds the encrypted counter to the message: over zeros, the block itself remains.
  const block = await subtle().encrypt({ name, counter: position, length: 64 }, imported, new Uint8Array(16));
  return [0, 8].map((at) => new DataView(block).getBigUint64(at, true));
}

/** SHA-256 of bytes, one piece after another. */
export async function sha256(...pieces) {
  const whole = Uint8Array.from(pieces.flatMap((piece) => [...piece]));
  return new Uint8Array(await subtle().digest("SHA-256", whole));
}

function subtle() {
  const found = globalThis.crypto?.subtle;
  if (!found)
    throw new EntropyUnavailable("there is no Web Crypto (https has it); nothing was privatised");
  return found;
}
