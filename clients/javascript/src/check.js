/**
 * The client's own proof that a survey's channel keeps the survey's context, in integers.
 *
 * For mechanisms that consist of codes, the odds of the codes prove it at any size. All others are compared row by
 * row, in the module `tables`. A survey without a proof is refused.
 */
import { requireModule } from "./kinds.js";
import { withinOdds } from "./odds.js";

/** Prove the promise or throw. Returns how: "odds", by those of codes; "whole", by every report of every pair. */
export async function checkPromise(mechanism, context) {
  if (mechanism.context === context && mechanism.proofs) return checkParts(mechanism.proofs);
  if (isProvedByOdds(mechanism, context)) return "odds";
  const { checkRows } = await requireModule("tables");
  checkRows(mechanism, context);
  return "whole";
}

function isProvedByOdds({ context: own, ranges, keepsByOdds }, context) {
  if (own === context) return keepsByOdds?.();
  // A plain response has the same odds for all pairs, so it may keep any context.
  const isPlain = own.kind === "uniform" && ranges;
  return isPlain && context.entries.every((epsilon) => withinOdds(ranges[0].high, ranges[0].low, epsilon));
}

/** Check the mechanisms of blocks one by one: a report reveals the block. */
async function checkParts(parts) {
  const verdicts = await Promise.all(parts.map((part) => checkPromise(part, part.context)));
  return verdicts.every((verdict) => verdict === "whole") ? "whole" : "odds";
}
