/**
 * The ledger: what a device has promised, entry by entry. Entries are never removed or refilled.
 *
 * An entry is a survey that the device answered under one secret, with its cost: the number of distinct values that the
 * person may answer with, times the survey's largest finite ε. The device charges it in full before it reads the value.
 * Later answers to the same survey cost nothing, because they are derived from the same secret.
 *
 * All surveys add up, even if their labels differ: a device cannot know whether two of them ask about the same thing. A
 * pair that a survey leaves open costs nothing here, because it needs `allowClear`.
 */
import { BudgetExceeded, InvalidSymbols } from "./errors.js";
import { atMost, exactNumber, lowest } from "./odds.js";

/** The default: the odds between two answers move by at most e^4, so 50:50 becomes at most 98:2. */
export const DEFAULT_BUDGET = "4";
const DIGITS = 1_000_000n;
const ZERO = { p: 0n, q: 1n };

/** Parse a budget: text or a positive number, or null for none. */
export function parseBudget(budget) {
  if (budget === null) return null;
  try {
    const limit = exactNumber(typeof budget === "number" ? `${budget}` : budget);
    if (limit.p > 0n) return limit;
  } catch {} // not a number
  throw new InvalidSymbols('budget must be a positive number such as "4", or null for none');
}

/** Refuse a survey that leaves pairs of answers open unless the caller allows it. */
export function requireConsent({ leavesOpen }, allowClear) {
  if (leavesOpen && !allowClear)
    throw new BudgetExceeded(
      "this survey sends part of the answer unprotected; nothing was sent. Show survey.disclosure, then pass allowClear: true",
    );
}

/** The entry of a survey that is answered under the secret with this tag. */
export function entryOf({ fingerprint, repeat, context: { entries } }, secret) {
  // Surveys that are answered once have no number of distinct values.
  return { survey: fingerprint, secret, cost: textOf(times(repeat.distinct ?? 1, largest(entries))) };
}

/** Entries of any format as those of the second: one for each survey and secret, with its cost. */
export function withCosts(entries) {
  const known = new Map();
  for (const { survey, secret, cost, times: number, context } of entries)
    known.set(`${survey} ${secret}`, { survey, secret, cost: cost ?? textOf(times(number, largestIn(context))) });
  return [...known.values()];
}

/** The entries with this one among them; `BudgetExceeded` if it is new and they would cost more than the budget. */
export function charge(before, entry, budget) {
  const after = withCosts([...before, entry]);
  const total = totalOf(after);
  if (budget === null || after.length === before.length || atMost(total, budget)) return after;
  throw new BudgetExceeded(
    `this device has spent ${roundedUp(totalOf(before))} of its budget of ${roundedUp(budget)}, and this survey would ` +
      `bring it to ${roundedUp(total)}; nothing was sent. Pass a larger budget if the person agrees`,
  );
}

/** What entries cost together, in lowest terms. */
export function totalOf(entries) {
  const costs = entries.map(({ cost }) => numberOf(cost));
  return costs.reduce((a, b) => lowest(a.p * b.q + b.p * a.q, a.q * b.q), ZERO);
}

/** A number for showing, rounded up. */
export const roundedUp = ({ p, q }) => Number((p * DIGITS + q - 1n) / q) / Number(DIGITS);

/** `p/q` as text, and back; in vectors, costs may also be decimals. */
const textOf = ({ p, q }) => `${p}/${q}`;
const numberOf = (text) => {
  const [p, q] = text.split("/");
  return q ? lowest(BigInt(p), BigInt(q)) : exactNumber(p);
};

const times = (number, { p, q }) => lowest(BigInt(number) * p, q);

/** The largest number, infinities left out. */
const largest = (numbers) => numbers.filter(({ p }) => p).reduce((a, b) => (atMost(a, b) ? b : a), ZERO);

/**
 * The largest finite ε in the record of a context, for ledgers of the first format. Nothing is built from the record,
 * so it may be of any size. An ε that concerns no pair counts, too.
 */
function largestIn({ epsilon, epsilons = [epsilon], across, matrix = [], distances, parts = [] }) {
  const texts = distances?.flat() ?? [...epsilons, across, ...matrix.flat()];
  const numbers = texts.filter((text) => text).map(exactNumber);
  const found = largest([...numbers, ...parts.map(largestIn)]);
  if (!distances) return found;
  const scale = exactNumber(epsilon);
  return scale.p ? lowest(found.p * scale.p, found.q * scale.q) : ZERO;
}
