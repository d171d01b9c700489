/**
 * The client's own check that a survey's channel keeps the survey's context, in integers.
 *
 * Up to 64 symbols every report of every pair is compared with a bound on e^ε that is never too large. Above, and
 * where the reports are many, the odds of the codes are, which is enough for the mechanisms that consist of codes. Up
 * to 64 symbols, what these odds do not decide is compared after all, or refused; above, it is said that it was not.
 */
import { sizesOf, typicalPairs } from "./context.js";
import { PrivacyViolation } from "./errors.js";
import { atMost, oddsOf, withinOdds } from "./odds.js";

const FEW_SYMBOLS = 64;
const FEW_REPORTS = 4096; // up to here all are compared, even if the odds of codes would do
const MOST_REPORTS = 2 ** 16; // of a few symbols; nobody waits for more to be compared

/** What was checked: "whole", every report of every pair; "odds", those of codes; "none". Throws what is broken. */
export function checkPromise(mechanism, context) {
  const few = context.size <= FEW_SYMBOLS;
  if (few && (mechanism.rows || mechanism.outputs <= FEW_REPORTS)) return checkTable(mechanism, context);
  const verdict = checkOdds(mechanism, context);
  return few && verdict === "none" ? checkTable(mechanism, context) : verdict;
}

function checkOdds(mechanism, context) {
  if (mechanism.context !== context) return checkOther(mechanism, context);
  if (mechanism.ranges) return checkRanges(mechanism);
  if (mechanism.parts) return checkParts(mechanism);
  return mechanism.outer ? checkProduct(mechanism) : "none";
}

function checkTable(mechanism, context) {
  if (mechanism.outputs > MOST_REPORTS && !mechanism.rows) throw new PrivacyViolation("too many reports to check");
  const rows = Array.from({ length: context.size }, (_, x) => mechanism.row(x));
  rows.forEach((row, x) => {
    rows.forEach((row2, x2) => {
      const within = oddsOf(x === x2 ? Infinity : context.epsilon(x, x2));
      const output = row.findIndex((high, y) => !within(high, row2[y]));
      if (output >= 0) throw broken({ x, x2, output });
    });
  });
  return "whole";
}

/**
 * Symbols of one range have odds of at most high/low on its reports. Against anybody outside, a symbol has at most
 * high/cover on the reports of its own range, and cover/low on those of another. Leftover words are on a report that
 * both share, and bring odds closer to 1.
 */
function checkRanges({ ranges, context: { inside, outward } }) {
  const least = outward.reduce((a, b) => (atMost(a, b) ? a : b));
  for (const { group, size, high, low, cover } of ranges) {
    demandOdds(size < 2 || withinOdds(high, low, inside[group]));
    demandOdds(inside.length < 2 || (withinOdds(high, cover, outward[group]) && withinOdds(cover, low, least)));
  }
  return "odds";
}

/** Two answers: odds inside a block are those about the symbol, across blocks they multiply. */
function checkProduct({ outer, inner, context: { of, inside, outward } }) {
  const sizes = sizesOf(of);
  inside.forEach((epsilon, j) => demandOdds(sizes[j] < 2 || withinOdds(inner.high, inner.low, epsilon)));
  demandOdds(withinOdds(outer.high * inner.high, outer.low * inner.low, outward[0]));
  return "odds";
}

/** A report shows the block, so every part keeps its own promise. */
function checkParts({ parts }) {
  const verdicts = parts.map((part) => checkPromise(part, part.context));
  return ["none", "odds", "whole"].find((verdict) => verdicts.includes(verdict));
}

/** A plain response has the same odds for all pairs, whatever context it is to keep. */
function checkOther({ context: { kind }, ranges }, context) {
  if (kind !== "uniform" || !ranges) return "none";
  const [{ high, low }] = ranges;
  for (const [x, x2] of typicalPairs([context])) demandOdds(withinOdds(high, low, context.epsilon(x, x2)));
  return "odds";
}

function demandOdds(kept) {
  if (!kept) throw broken();
}

function broken(where) {
  return new PrivacyViolation(
    "the survey breaks its promise: a report would say more than the context allows",
    where,
  );
}
