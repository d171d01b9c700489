/**
 * The client's own proof that a survey's channel keeps the survey's context, in integers.
 *
 * The odds of codes prove it for the mechanisms that consist of codes, at any size. All else is compared row by
 * row, which the module of tables does. What is not proved is refused.
 */
import { need } from "./kinds.js";
import { withinOdds } from "./odds.js";

/** How the promise was proved: "odds", by those of codes; "whole", every report of every pair. Throws otherwise. */
export async function checkPromise(mechanism, context) {
  if (mechanism.context === context && mechanism.proofs) return checkParts(mechanism.proofs);
  if (isProvedByOdds(mechanism, context)) return "odds";
  const { checkRows } = await need("tables");
  checkRows(mechanism, context);
  return "whole";
}

function isProvedByOdds({ context: own, ranges, keepsByOdds }, context) {
  if (own === context) return keepsByOdds?.();
  // A plain response has the same odds for all pairs, so it may keep any context.
  const isPlain = own.kind === "uniform" && ranges;
  return isPlain && context.entries.every((epsilon) => withinOdds(ranges[0].high, ranges[0].low, epsilon));
}

/** Mechanisms that each answer for a block of their own, which a report shows. */
async function checkParts(parts) {
  const verdicts = await Promise.all(parts.map((part) => checkPromise(part, part.context)));
  return verdicts.every((verdict) => verdict === "whole") ? "whole" : "odds";
}
