/**
 * Codes: for each point x a set of outputs S_x that x favours by odds of e^ε.
 *
 * Of the words of B bits, each output of S_x has `high`, and each other output has `low`. The `leftover` words all give
 * output 0, for every point:
 *
 *     2^B · Q(y|x) = low + (high − low)·[y ∈ S_x] + leftover·[y = 0]
 *
 * `place(point, index)` lists the outputs of a point, those of S_x first. `contains(point, output)` says whether an
 * output is in S_x. `respond(point, word)` is the output for a word. Words and numbers of words are BigInts; all other
 * numbers are not.
 */
import { unpackU32 } from "./canonical.js";
import { parseCount, expect, requireMemory, requireFields, MAX_SIZE, readerOf, requireInteger } from "./fields.js";

/** Read a code from its record, with the integers in it. */
export function codeOf(record) {
  const read = readerOf(record, READERS);
  const base = read === READERS.cyclic ? ["base", "base_blocks"] : [];
  requireFields(record, "kind", "points", "outputs", "word_bits", "high", "low", "leftover", ...base);
  requireInteger(record.points, 0, MAX_SIZE);
  requireInteger(record.outputs, 0, MAX_SIZE);
  const [high, low, leftover] = [record.high, record.low, record.leftover].map(parseCount);
  const used = wordsOf(record.word_bits) - leftover;
  return codeWith({ ...record, wordBits: record.word_bits, high, low, leftover, used }, read);
}

/** Return the number of words with this many bits. */
export const wordsOf = (bits) => 1n << BigInt(requireInteger(bits, 8, 64));

/** Return the place of a word: `high` words for each of the first `raised` places, then `low` for each other place. */
export function twoLevelIndex(word, raised, { high, low }) {
  const favoured = BigInt(raised) * high;
  return word < favoured ? Number(word / high) : raised + Number((word - favoured) / low);
}

/** Return a code whose words add up: what all codes share, and the sets that `read` describes. */
function codeWith(code, read) {
  const { outputs, high, low, leftover, used } = code;
  const sets = { raised: 1, ...read(code) };
  const { raised, place, contains } = sets;
  const words = BigInt(raised) * high + BigInt(outputs - raised) * low;
  expect(!outputs || (words === used && low < high), "all words, with high above low");
  return {
    ...code,
    respond: (point, word) => (word < used ? place(point, twoLevelIndex(word, raised, code)) : 0),
    row(point) {
      const row = Array.from({ length: outputs }, (_, y) => (contains(point, y) ? high : low));
      row[0] += leftover;
      return row;
    },
    ...sets,
  };
}

const isPoint = (point, output) => point === output;

const READERS = {
  /** The code without noise: a point is its own report. Other places follow around the circle, but are never drawn. */
  clear({ points, outputs, high, used, leftover }) {
    expect(points === outputs && high === used && !leftover, "all words on the point");
    return { place: (point, index) => (point + index) % outputs, contains: isPoint, respond: (point) => point };
  },

  /** k-ary randomised response: `S_x = {x}`; the points 1, 2, … before it follow, around the circle. */
  randomized({ points, outputs }) {
    expect(points === outputs, "an output per point");
    return { place: (point, index) => (point >= index ? 0 : outputs) + point - index, contains: isPoint };
  },

  /** Hadamard response: S_x are the y with an even number of bits in common with x + 1. */
  hadamard({ points, outputs: K, high, leftover }) {
    const fits = K > 1 && (K & (K - 1)) === 0 && points === K - 1 && !leftover && high % 2n === 0n;
    expect(fits, "2^n outputs, and even odds that fill words");
    // The low bits of a word draw y. The bits above them are a coin: below high/2 it gives the sign +.
    const [half, mask, plus] = [K / 2, BigInt(K - 1), (high / 2n) * BigInt(K)];
    return {
      raised: half,
      /** Spread the index over the bits other than the lowest bit of x + 1; that bit then sets the sign. */
      place(point, index) {
        const [filling, below] = [index & (half - 1), ((point + 1) & -(point + 1)) - 1];
        return withSign(point + 1, ((filling & ~below) << 1) | (filling & below), index >= half);
      },
      contains: (point, output) => !oddParity((point + 1) & output),
      /** Draw y, and flip it if its sign differs from the coin's. */
      respond: (point, word) => withSign(point + 1, Number(word & mask), word >= plus),
    };
  },

  /** Cyclic response: outputs (i, y), numbered i·K + y, are base blocks D_i turned around a circle of K points. */
  cyclic({ points: K, outputs, base, base_blocks }) {
    const elements = unpackU32(base, K);
    const w = elements.length / requireInteger(base_blocks, 1, MAX_SIZE);
    const fits = Number.isInteger(w) && w > 0 && w < K && outputs === base_blocks * K;
    expect(
      fits && elements.every((d, i) => i % w === 0 || d > elements[i - 1]),
      "equal base blocks, in ascending order",
    );
    requireMemory(outputs);
    const member = new Uint8Array(outputs);
    elements.forEach((d, i) => (member[Math.floor(i / w) * K + d] = 1));
    // The output of point 0 at each place. The output of point x is x further around its circle.
    const places = new Uint32Array(outputs);
    let [inside, outside] = [0, elements.length];
    member.forEach((isMember, output) => {
      const d = output % K;
      places[isMember ? inside++ : outside++] = output - d + ((K - d) % K);
    });
    return {
      raised: elements.length,
      place: (point, index) => places[index] + point - ((places[index] % K) + point < K ? 0 : K),
      /** `x − y mod K ∈ D_i`. */
      contains: (point, output) => member[output - (output % K) + ((point + K - (output % K)) % K)] === 1,
    };
  },
};

/** Return y with the wanted sign: flip it at the lowest bit of the row if necessary. */
const withSign = (row, y, minus) => (oddParity(row & y) === minus ? y : y ^ (row & -row)) >>> 0;

function oddParity(bits) {
  bits ^= bits >>> 16;
  bits ^= bits >>> 8;
  bits ^= bits >>> 4;
  return ((0x6996 >>> (bits & 15)) & 1) === 1; // bit i of 0x6996 is the parity of i
}
