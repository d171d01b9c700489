/**
 * Exact ε, and a lower bound on e^ε.
 *
 * An ε is a fraction `{ p, q }` of BigInts, or `Infinity` where nothing is promised. e^ε is irrational for every
 * fraction but 0, so use a lower bound: then every doubt leads to a refusal.
 */
import { expect } from "./fields.js";

const MAX_EPSILON = { p: 40n, q: 1n };
const MAX_USEFUL_EPSILON = 100n; // e^100 is above 2^144, and two words have 128 bits
const BITS = 192n;

/** Parse a number as records write it: "0.25", "1/3", "inf". */
export function exactNumber(text) {
  if (text === "inf") return Infinity;
  const match =
    typeof text === "string" && text.length <= 64 && /^(0|[1-9]\d*)(?:\.(\d*[1-9])|\/([1-9]\d*))?$/.exec(text);
  const [, whole, decimals = "", divisor] = match || [];
  expect(match, "a decimal, a fraction or inf, as text");
  const number = reduceFraction(BigInt(whole + decimals), BigInt(divisor ?? 10n ** BigInt(decimals.length)));
  expect(
    !divisor || (`${number.q}` === divisor && !hasDecimals(number.q)),
    "a fraction in lowest terms",
  );
  return number;
}

/** Parse an ε that a context may promise: above 0 and at most 40, or infinite. */
export function positiveEpsilon(text) {
  const epsilon = exactNumber(text);
  expect(
    epsilon === Infinity || (epsilon.p && atMost(epsilon, MAX_EPSILON)),
    "an epsilon above 0, up to 40, or inf",
  );
  return epsilon;
}

/** Whether `a ≤ b`. */
export const atMost = (a, b) => b === Infinity || (a !== Infinity && a.p * b.q <= b.p * a.q);

/** Return a function that tests `high ≤ e^ε · low` for non-negative BigInts. In doubt, it returns false. */
export function oddsOf(epsilon) {
  const bound = epsilon === Infinity ? 0n : expBelow(epsilon);
  return (high, low) => high <= low || !bound || high << BITS <= bound * low;
}

/** Whether `high ≤ e^ε · low`. */
export const withinOdds = (high, low, epsilon) => oddsOf(epsilon)(high, low);

const bounds = new Map(); // by ε

/** Return an integer of at most `2^192 · e^ε`: add the terms `ε^i / i!` of the series, each rounded down. */
function expBelow({ p, q }) {
  const key = `${p}/${q}`;
  if (p > MAX_USEFUL_EPSILON * q) [p, q] = [MAX_USEFUL_EPSILON, 1n];
  if (!bounds.has(key)) {
    let [sum, term] = [0n, 1n << BITS];
    for (let i = 1n; term; i++) [sum, term] = [sum + term, (term * p) / (q * i)];
    bounds.set(key, sum);
  }
  return bounds.get(key);
}

/** Return `p / q` in lowest terms. */
export function reduceFraction(p, q) {
  let [a, b] = [p, q];
  while (b) [a, b] = [b, a % b];
  return { p: p / a, q: q / a };
}

/** Whether a fraction in lowest terms over q is a finite decimal. */
function hasDecimals(q) {
  for (const prime of [2n, 5n]) while (q % prime === 0n) q /= prime;
  return q === 1n;
}
