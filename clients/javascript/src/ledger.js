/**
 * The ledger: what a device has promised, entry by entry. Entries are never removed or refilled.
 *
 * An entry is a survey that the device answered under one secret, with its cost: the number of distinct values that the
 * person may answer with, times the survey's largest finite ε. The device charges the full cost before it reads the
 * value. Later answers to the same survey cost nothing, because they are derived from the same secret.
 *
 * All surveys add up, even if their labels differ: a device cannot know whether two of them ask about the same thing.
 * An unprotected pair of answers costs nothing here, because the survey needs `allowClear`.
 */
import { BudgetExceeded, InvalidSymbols } from "./errors.js";
import { atMost, exactNumber, reduceFraction } from "./odds.js";

/** By default, reports change the odds between two answers by at most e^4: 50:50 becomes at most 98:2. */
export const DEFAULT_BUDGET = "4";
const DIGITS = 1_000_000n;
const ZERO = { p: 0n, q: 1n };

/** Parse a budget: a positive number or its text, or null for no limit. */
export function parseBudget(budget) {
  if (budget === null) return null;
  try {
    const limit = exactNumber(typeof budget === "number" ? `${budget}` : budget);
    if (limit.p > 0n) return limit;
  } catch {} // not a number
  throw new InvalidSymbols('budget must be a positive number such as "4", or null for none');
}

/** Refuse a survey that leaves pairs of answers unprotected unless the caller allows it. */
export function requireConsent({ leavesOpen }, allowClear) {
  if (leavesOpen && !allowClear)
    throw new BudgetExceeded(
      "this survey sends part of the answer unprotected; nothing was sent. Show survey.disclosure, then pass " +
        "allowClear: true",
    );
}

/** Return the entry of a survey that is answered under the secret with this tag. */
export function entryOf({ fingerprint, repeat, context: { entries } }, secret) {
  return { survey: fingerprint, secret, cost: textOf(times(repeat.distinct ?? 1, largest(entries))) };
}

/** Convert entries of either format to format 2: one for each survey and secret, with its cost. */
export function withCosts(entries) {
  const known = new Map();
  for (const { survey, secret, cost, times: number, context } of entries)
    known.set(`${survey} ${secret}`, { survey, secret, cost: cost ?? textOf(times(number, largestIn(context))) });
  return [...known.values()];
}

/** Return the entries with this one added; `BudgetExceeded` if it is new and exceeds the budget. */
export function charge(before, entry, budget) {
  const after = withCosts([...before, entry]);
  const total = totalCost(after);
  if (budget === null || after.length === before.length || atMost(total, budget)) return after;
  throw new BudgetExceeded(
    `this device has spent ${roundUp(totalCost(before))} of its budget of ${roundUp(budget)}, and this survey would ` +
      `bring it to ${roundUp(total)}; nothing was sent. Pass a larger budget if the person agrees`,
  );
}

/** Return the total cost of entries, in lowest terms. */
export function totalCost(entries) {
  const costs = entries.map(({ cost }) => numberOf(cost));
  return costs.reduce((a, b) => reduceFraction(a.p * b.q + b.p * a.q, a.q * b.q), ZERO);
}

/** Round a fraction up to a number for display. */
export const roundUp = ({ p, q }) => Number((p * DIGITS + q - 1n) / q) / Number(DIGITS);

/** Convert a fraction to the text `p/q`, and back. In vectors, costs may also be decimals. */
const textOf = ({ p, q }) => `${p}/${q}`;
const numberOf = (text) => {
  const [p, q] = text.split("/");
  return q ? reduceFraction(BigInt(p), BigInt(q)) : exactNumber(p);
};

const times = (number, { p, q }) => reduceFraction(BigInt(number) * p, q);

/** Return the largest finite number. */
const largest = (numbers) => numbers.filter(({ p }) => p).reduce((a, b) => (atMost(a, b) ? b : a), ZERO);

/**
 * Return the largest finite ε in the record of a context, for ledgers of format 1. Nothing is built from the record, so
 * it may have any size. An ε that applies to no pair counts too.
 */
function largestIn({ epsilon, epsilons = [epsilon], across, matrix = [], distances, parts = [] }) {
  const texts = distances?.flat() ?? [...epsilons, across, ...matrix.flat()];
  const numbers = texts.filter((text) => text).map(exactNumber);
  // A context of an unknown kind must not count as free.
  if (!numbers.length && !parts.length) throw new BudgetExceeded("the ledger has an entry of an unknown kind");
  const max = largest([...numbers, ...parts.map(largestIn)]);
  if (!distances) return max;
  const scale = exactNumber(epsilon);
  return scale.p ? reduceFraction(max.p * scale.p, max.q * scale.q) : ZERO;
}
