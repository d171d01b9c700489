/**
 * The ledger: what a device has promised, entry by entry. Nothing is taken out, and no passage of time refills it.
 *
 * An entry is a survey that was answered under one secret. It costs `times · E`: E is the survey's context, `times` how
 * many distinct values it may be answered with. It is charged whole, before the value is read; later answers to the
 * same survey are derived from the same secret and cost nothing.
 */
import { canonicalText, hex, utf8 } from "./canonical.js";
import { contextOf, sameRecord, typicalPairs } from "./context.js";
import { BudgetExceeded } from "./errors.js";
import { demand, section } from "./fields.js";
import { atMost, plus, ZERO } from "./odds.js";
import { sha256 } from "./words.js";

/** The account of a survey: that of the subject its author names, or of its domain. */
export async function accountOf(survey, subject) {
  if (subject !== null) return `subject ${subject}`;
  return `domain ${hex(await sha256(utf8(canonicalText(survey.context.record.domain))))}`;
}

/** The name of a subject, or null for an account of the domain's own. One name is one account, however it is typed. */
export function subjectOf(subject) {
  demand(subject === null || (subject && typeof subject === "string"), "text as subject");
  return subject && subject.normalize();
}

/** The context of a cap, given as a record; its domain is the survey's. */
export function capOf(record, survey) {
  return section("cap", () => contextOf({ ...record, domain: survey.context.record.domain }));
}

/** The entries with one more, or the same ones if it was charged before; `BudgetExceeded` beyond the cap. */
export function charged(entries, entry, cap) {
  const ofAccount = entries.filter(({ account }) => account === entry.account);
  if (ofAccount.some(({ survey, secret }) => survey === entry.survey && secret === entry.secret)) return entries;
  if (cap && !within([...ofAccount, entry], cap)) {
    throw new BudgetExceeded(
      `the cap is reached, after ${ofAccount.length} surveys of this account; nothing was sent`,
    );
  }
  return [...entries, entry];
}

/**
 * Whether `Σ times · E[x, x2] ≤ cap[x, x2]` for every two symbols.
 *
 * A cost over another domain says something about the same people, but not pair by pair: its largest entry counts.
 */
function within(entries, cap) {
  const costs = entries.map(({ times, context }) => ({ times: BigInt(times), context: contextOf(context) }));
  const isHere = ({ context }) => sameRecord(context.record.domain, cap.record.domain);
  const here = costs.filter(isHere);
  const abroad = costs
    .filter((cost) => !isHere(cost))
    .reduce((sum, { times, context }) => plus(sum, largestEntry(context), times), ZERO);
  for (const [x, x2] of typicalPairs([...here.map(({ context }) => context), cap])) {
    const spent = here.reduce((sum, { times, context }) => plus(sum, context.epsilon(x, x2), times), abroad);
    if (!atMost(spent, cap.epsilon(x, x2))) return false;
  }
  return true;
}

function largestEntry(context) {
  let largest = ZERO;
  for (const [x, x2] of typicalPairs([context])) {
    const epsilon = context.epsilon(x, x2);
    if (!atMost(epsilon, largest)) largest = epsilon;
  }
  return largest;
}
