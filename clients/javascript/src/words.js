/**
 * Words: uniform 64-bit integers, two for each person.
 *
 * They come from the platform's cryptographic generator, or from AES-256 under the device's secret for an answer that
 * the device remembers. There is no other source, and no fallback without entropy.
 */
import { EntropyUnavailable } from "./errors.js";

let lastUnused; // the start of the unused half of the last draw

/** Draw an even number of fresh words, at most 4,096. It draws twice as many; platforms allow up to 8,192. */
export function freshWords(count) {
  const drawn = new BigUint64Array(2 * count);
  try {
    crypto.getRandomValues(drawn);
  } catch {
    throw new EntropyUnavailable("there is no randomness; nothing was privatised");
  }
  // A stuck source repeats itself within a draw or from one draw to the next; a working one does once in 2^128 draws.
  const [start, unused] = [`${drawn[0]},${drawn[1]}`, `${drawn[count]},${drawn[count + 1]}`];
  const isStuck = unused === start || unused === lastUnused;
  lastUnused = unused;
  if (isStuck) throw new EntropyUnavailable("randomness repeats itself; nothing was privatised");
  return drawn.slice(0, count);
}

/** Return the two words at a position of 16 bytes under a key of 32 bytes: AES-256 of that block. */
export async function wordsAt(key, position) {
  const name = "AES-CTR";
  const imported = await subtle().importKey("raw", key, name, false, ["encrypt"]);
  // Counter mode XORs the encrypted counter with the message. With zeros, that is the encrypted block itself.
  const block = await subtle().encrypt({ name, counter: position, length: 64 }, imported, new Uint8Array(16));
  return [0, 8].map((at) => new DataView(block).getBigUint64(at, true));
}

/** Return the SHA-256 of the concatenated pieces. */
export async function sha256(...pieces) {
  const content = Uint8Array.from(pieces.flatMap((piece) => [...piece]));
  return new Uint8Array(await subtle().digest("SHA-256", content));
}

function subtle() {
  const webCrypto = globalThis.crypto?.subtle;
  if (!webCrypto)
    throw new EntropyUnavailable("there is no Web Crypto (https has it); nothing was privatised");
  return webCrypto;
}
