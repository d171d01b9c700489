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
import { atMost, exactNumber, lowest } from "./odds.js";

/** The budget of a client that names none: odds between two answers move by at most e^4, so 50:50 becomes 98:2. */
export const DEFAULT_BUDGET = "4";
const MOST_CLASSES = 1024; // of symbols, up to which costs are added pair by pair
const DIGITS = 1_000_000n;
const LARGEST_UNIT = 1n << 512n;

/** A budget as a number, or null for none: text or a number above 0. */
export function budgetOf(budget) {
  if (budget === null) return null;
  try {
    const limit = exactNumber(typeof budget === "number" ? `${budget}` : budget);
    if (limit.p > 0n) return limit;
  } catch {} // not the way numbers are written
  throw new InvalidSymbols('a budget must be a number above 0 such as "4", or null for none');
}

/** Refuse a survey that sends part of the answer as it is, unless the caller says that people know. */
export function demandConsent({ leavesOpen }, allowClear = false) {
  if (typeof allowClear !== "boolean") throw new InvalidSymbols("allowClear must be true or false");
  if (leavesOpen && !allowClear)
    throw new BudgetExceeded(
      "this survey sends part of the answer unprotected. Show survey.disclosure, then pass allowClear: true",
    );
}

/** The entry of a survey under a secret, which is named by its tag. */
export function entryOf({ fingerprint, repeat, context }, secret) {
  // Surveys that are answered once have no number of distinct values.
  return { survey: fingerprint, secret, times: repeat.distinct ?? 1, context: context.record };
}

/** Entries of any format: without accounts, and one for each survey and secret. */
export function withoutDuplicates(entries) {
  const known = new Map(entries.map(({ account, ...entry }) => [`${entry.survey} ${entry.secret}`, entry]));
  return [...known.values()];
}

/**
 * The entries with this one among them; `BudgetExceeded` if it is new and they would cost more than the budget.
 *
 * The modules that the entries need must be installed.
 */
export function charged(entries, entry, budget) {
  const before = withoutDuplicates(entries);
  const after = withoutDuplicates([...before, entry]);
  if (budget === null || after.length === before.length) return after;
  const total = totalOf(after);
  if (atMost(total, budget)) return after;
  throw new BudgetExceeded(
    `this device has spent ${roundedUp(totalOf(before))} of its budget of ${roundedUp(budget)}, and this survey would ` +
      `bring it to ${roundedUp(total)}; nothing was sent. Pass a larger budget if the person agrees`,
  );
}

/** What entries cost together: the sum over domains, in lowest terms. */
export function totalOf(entries) {
  const domains = new Map();
  for (const { times, context: record } of entries) {
    const name = canonicalText(record.domain);
    const costs = domains.get(name) ?? domains.set(name, []).get(name);
    const context = contextOf(record);
    costs.push({ ...context, times: BigInt(times), finite: context.entries.filter(({ p }) => p) });
  }
  const all = [...domains.values()];
  // Fractions over one denominator are integers, which are fast to add and compare.
  const denominators = new Set(all.flat().flatMap(({ finite }) => finite.map(({ q }) => q)));
  const unit = [...denominators].reduce((unit, q) => (unit < LARGEST_UNIT ? unit * lowest(q, unit).p : unit), 1n);
  return lowest(
    all.reduce((sum, costs) => sum + domainTotal(costs, unit), 0n),
    unit,
  );
}

/** A number for showing, rounded up. */
export const roundedUp = ({ p, q }) => Number((p * DIGITS + q - 1n) / q) / Number(DIGITS);

/** The largest sum of any pair; or, where pairs are too many, the sum of the largest entries, which is never less. */
function domainTotal(costs, unit) {
  // Exact where q divides the unit. Rounded up where a survey has too many denominators for that.
  const weightOf = ({ p, q }, times) => (times * p * unit + q - 1n) / q;
  const tables = costs.map(({ finite, times }) => new Map(finite.map((entry) => [entry, weightOf(entry, times)])));
  const classes = commonClasses(costs);
  if (!classes) return tables.reduce((sum, weights) => sum + [...weights.values()].reduce(larger, 0n), 0n);
  // A pair that a survey leaves open has no weight.
  const weigh = (x, x2) => costs.reduce((sum, { epsilon }, i) => sum + (tables[i].get(epsilon(x, x2)) ?? 0n), 0n);
  let most = 0n;
  for (const [x, twin] of classes) {
    if (twin) most = larger(most, weigh(x, twin));
    for (const [x2] of classes) if (x !== x2) most = larger(most, weigh(x, x2));
  }
  return most;
}

const larger = (a, b) => (a > b ? a : b);

/** One or two symbols of each class of symbols that no context tells apart; null where there are too many classes. */
function commonClasses(contexts) {
  const nonUniform = contexts.filter(({ kind }) => kind !== "uniform");
  // Uniform contexts tell no symbols apart, so any two stand for all of them.
  const size = nonUniform.length ? contexts[0].size : Math.min(2, contexts[0].size);
  const tree = new Map(); // by the class in the first context, then in the second …
  const classes = [];
  for (let x = 0; x < size; x++) {
    let node = tree;
    for (const { classOf } of nonUniform) node = branchOf(node, classOf(x));
    if (!node.members) classes.push((node.members = []));
    if (node.members.length < 2) node.members.push(x);
    if (classes.length > MOST_CLASSES) return null;
  }
  return classes;
}

const branchOf = (node, name) => node.get(name) ?? node.set(name, new Map()).get(name);
