/**
 * The ledger: what a device has promised, entry by entry. Nothing is taken out, and no passage of time refills it.
 *
 * An entry is a survey that was answered under one secret. It costs `times · E`: E is the survey's context, `times` how
 * many distinct values it may be answered with. It is charged whole, before the value is read; later answers to the
 * same survey are derived from the same secret and cost nothing.
 *
 * All entries count against one budget. Within a domain they add up pair by pair, and the largest sum counts; domains
 * add up in full. A pair that a survey leaves open costs nothing here, because it needs `allowClear`.
 */
import { canonicalText } from "./canonical.js";
import { contextOf } from "./context.js";
import { BudgetExceeded, InvalidSymbols } from "./errors.js";
import { needFor } from "./kinds.js";
import { atMost, exactNumber, lowest, plus, ZERO } from "./odds.js";

/** The budget of a client that names none: odds between two answers move by at most e^4, so 50:50 becomes 98:2. */
export const DEFAULT_BUDGET = "4";
const MOST_CLASSES = 1024; // of symbols, up to which costs are added pair by pair
const DIGITS = 1_000_000n;

/** A budget as a number, or null for none: text or a number above 0. */
export function budgetOf(budget) {
  if (budget === null) return null;
  try {
    const limit = exactNumber(typeof budget === "number" ? `${budget}` : budget);
    if (limit.p > 0n) return limit;
  } catch {} // not the way numbers are written
  throw new InvalidSymbols('a budget must be a number above 0 such as "4" or 0.5, or null for no budget');
}

/** Refuse a survey that sends part of the answer as it is, unless the caller says that people know. */
export function demandConsent({ leavesOpen }, allowClear = false) {
  if (typeof allowClear !== "boolean") throw new InvalidSymbols("allowClear must be true or false");
  if (leavesOpen && !allowClear)
    throw new BudgetExceeded(
      "this survey sends part of the answer unprotected. Show the person which (survey.unprotected), then pass " +
        "allowClear: true",
    );
}

/** The entry of a survey under a secret, which is named by its tag. */
export function entryOf({ fingerprint, repeat, context }, secret) {
  // Surveys that are answered once have no number of distinct values.
  return { survey: fingerprint, secret, times: repeat.distinct ?? 1, context: context.record };
}

/** Entries of any format: without accounts, and one for each survey and secret. */
export function settled(entries) {
  const known = new Map(entries.map(({ account, ...entry }) => [`${entry.survey} ${entry.secret}`, entry]));
  return [...known.values()];
}

/** The entries with this one among them; `BudgetExceeded` if it is new and they would cost more than the budget. */
export async function charged(entries, entry, budget) {
  const before = settled(entries);
  const after = settled([...before, entry]);
  if (budget === null || after.length === before.length) return after;
  const spent = await totalOf(before);
  const total = await totalOf(after);
  if (atMost(total, budget)) return after;
  throw new BudgetExceeded(
    `this device has spent ${roundedUp(spent)} of its budget of ${roundedUp(budget)}, and this survey would bring it to ` +
      `${roundedUp(total)}; nothing was sent. Pass a larger budget if the person agreed`,
  );
}

/** What entries cost together: the sum over domains, in lowest terms. */
export async function totalOf(entries) {
  await loadFor(entries);
  const domains = new Map();
  for (const { times, context } of entries) {
    const name = canonicalText(context.domain);
    const costs = domains.get(name) ?? domains.set(name, []).get(name);
    costs.push({ times: BigInt(times), context: contextOf(context) });
  }
  const total = [...domains.values()].reduce((sum, costs) => plus(sum, domainTotal(costs), 1n), ZERO);
  return lowest(total.p, total.q);
}

/** Load the modules that entries need. Call it before locking the device: it may wait for a network. */
export const loadFor = (entries) => needFor(...entries.map(({ context }) => context));

/** A number for showing, rounded up. */
export const roundedUp = ({ p, q }) => Number((p * DIGITS + q - 1n) / q) / Number(DIGITS);

/** The largest sum of any pair; or, where pairs are too many, the sum of the largest entries, which is never less. */
function domainTotal(costs) {
  const classes = commonClasses(costs.map(({ context }) => context));
  if (!classes) return costs.reduce((sum, { times, context }) => plus(sum, largestEntry(context), times), ZERO);
  const sums = [];
  for (const [x, twin] of classes) {
    if (twin !== undefined) sums.push(pairTotal(costs, x, twin));
    for (const [x2] of classes) if (x !== x2) sums.push(pairTotal(costs, x, x2));
  }
  return largest(sums);
}

function pairTotal(costs, x, x2) {
  return costs.reduce((sum, { times, context }) => {
    const epsilon = context.epsilon(x, x2);
    return epsilon === Infinity ? sum : plus(sum, epsilon, times);
  }, ZERO);
}

const largestEntry = ({ entries }) => largest(entries.filter((epsilon) => epsilon !== Infinity));
const largest = (numbers) => numbers.reduce((most, number) => (atMost(number, most) ? most : number), ZERO);

/** One or two symbols of each class that all contexts have in common; null where there are too many classes. */
function commonClasses(contexts) {
  const telling = contexts.filter(({ kind }) => kind !== "uniform");
  // To uniform contexts all symbols are alike, and there may be 2^31 of them.
  const size = telling.length ? contexts[0].size : Math.min(2, contexts[0].size);
  const classes = new Map();
  for (let x = 0; x < size && classes.size <= MOST_CLASSES; x++) {
    const name = telling.map((context) => context.classOf(x)).join();
    const members = classes.get(name) ?? classes.set(name, []).get(name);
    if (members.length < 2) members.push(x);
  }
  return classes.size <= MOST_CLASSES && [...classes.values()];
}
