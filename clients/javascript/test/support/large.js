/** Surveys of more symbols than a client enumerates, written by hand from a few numbers. */

const TOTAL = 1n << 64n;
const UNIT = 1n << 50n;
export const e = Math.exp;

export const packed = (numbers) => Buffer.from(Uint32Array.from(numbers).buffer).toString("base64");

/** Units as words; a float is near enough where a test does not look at the last words. */
const words = (units) => BigInt(Math.floor(units * 2 ** 50));

/** A randomized code whose odds are `odds` to 1. */
export function randomizedCode(points, odds) {
  const low = BigInt(Math.floor(2 ** 53 / (odds + points))) << 11n;
  const high = BigInt(Math.floor(odds * 2 ** 40)) * (low >> 40n);
  const leftover = TOTAL - high - BigInt(points - 1) * low;
  const counts = { high: String(high), low: String(low), leftover: String(leftover) };
  return { kind: "randomized", points, outputs: points, word_bits: 64, ...counts };
}

/** Groups of two; units of words on favoured outputs, on others, and on those of other groups. */
export function groupsOfTwo(groups, { high, low, cover }) {
  const levels = { high: words(high), low: words(low), cover: cover * UNIT };
  return {
    kind: "groups",
    codes: [randomizedCode(2, 2)],
    levels: [Object.fromEntries(Object.entries(levels).map(([name, count]) => [name, String(count)]))],
    code_of_group: Array(groups).fill(0),
    clear: String(levels.high + levels.low - 2n * levels.cover),
    word_bits: 64,
  };
}

export function blocks(size, count, epsilon, across) {
  const block_of = packed(Array.from({ length: size * count }, (_, x) => Math.floor(x / size)));
  return { kind: "blocks", domain: { kind: "range", size: size * count, start: 0 }, epsilon, across, block_of };
}

export function uniform(size, epsilon) {
  return { kind: "uniform", domain: { kind: "range", size, start: 0 }, epsilon };
}

/** The canonical text of a survey. */
export function resolved(context, mechanism, mechanism_context = null) {
  const about = { title: "", text: "", contact: "", minimum_reports: 0, opens: "", closes: "" };
  const promise = { format: 1, name: "by hand", context, mechanism, mechanism_context, repeat: "once" };
  return JSON.stringify(sorted({ promise, about }));
}

function sorted(data) {
  if (Array.isArray(data)) return data.map(sorted);
  if (data === null || typeof data !== "object") return data;
  return Object.fromEntries(
    Object.keys(data)
      .sort()
      .map((key) => [key, sorted(data[key])]),
  );
}

/** Odds of 2 to 1, in words that add up for any number of points. */
export function evenCode(points) {
  const low = TOTAL / BigInt(points + 1);
  const leftover = TOTAL - BigInt(points + 1) * low;
  const counts = { high: String(2n * low), low: String(low), leftover: String(leftover) };
  return { kind: "randomized", points, outputs: points, word_bits: 64, ...counts };
}

/** The code without noise. */
export function clearCode(points) {
  return { kind: "clear", points, outputs: points, word_bits: 64, high: String(TOTAL), low: "0", leftover: "0" };
}

/** A code of two points over words of 8 bits. */
export function smallCode(high, low) {
  return { kind: "randomized", points: 2, outputs: 2, word_bits: 8, high: String(high), low: String(low), leftover: "0" };
}
