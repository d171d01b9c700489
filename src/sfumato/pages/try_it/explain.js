/** Numbers and sentences for the try page: what a report reveals, and what it does not. */

/** Format a share: `0.366` as "36.6%". Small shares keep two digits. */
export function formatPercent(share) {
  if (share === 0) return "0%";
  const decimals = share >= 0.1 ? 1 : Math.min(8, 1 - Math.floor(Math.log10(share * 100)));
  return `${(share * 100).toFixed(decimals)}%`;
}

/**
 * Format the odds of p against q as "73:27", for someone who thought both equally likely.
 * The odds are 100:0 only if they are certain.
 */
export function formatOdds(p, q) {
  const share = p / (p + q);
  const rounded = Math.round(share * 100);
  const isCertain = p === 0 || q === 0;
  if (!isCertain && rounded === 100) return "more than 99:1";
  if (!isCertain && rounded === 0) return "less than 1:99";
  return `${rounded}:${100 - rounded}`;
}

/** Return the probabilities p and q of the report that favours `own` most, by p/(p + q). */
export function strongestEvidence(own, other) {
  let best = { p: 1, q: 1 };
  for (let y = 0; y < own.length; y++) {
    if (own[y] > 0 && own[y] * best.q > best.p * other[y]) best = { p: own[y], q: other[y] };
  }
  return best;
}

/** State what someone who hesitates between two answers can conclude from this report. */
export function conclusionText(report, own, other, ownName, otherName) {
  const p = own[report];
  const q = other[report];
  const ownShare = formatPercent(p);
  const sent = `With your answer, ${ownName}, this report is sent with probability ${ownShare}`;
  if (q === 0) {
    return (
      `${sent}; with ${otherName}, never. Between these two answers the survey promises nothing: ` +
      "this report tells them apart."
    );
  }
  const best = strongestEvidence(own, other);
  const limit =
    best.q === 0
      ? "another report could tell these two apart for certain"
      : `no report can say more than ${formatOdds(best.p, best.q)}`;
  return (
    `${sent}; with ${otherName}, ${formatPercent(q)}. Someone who thought both equally likely ` +
    `now says ${formatOdds(p, q)}, and ${limit}.`
  );
}

/** Group the reports by which of two answers they favour, and omit empty groups. */
export function groupReports(own, other, ownName, otherName) {
  const reports = Array.from(own.keys());
  const groups = [
    { name: `those that favour ${ownName}`, reports: reports.filter((y) => own[y] > other[y]) },
    {
      name: "those that favour neither",
      reports: reports.filter((y) => own[y] === other[y] && own[y] > 0),
    },
    { name: `those that favour ${otherName}`, reports: reports.filter((y) => own[y] < other[y]) },
  ];
  return groups.filter((group) => group.reports.length > 0);
}

/** Return each report's share of the draws. */
export function reportShares(draws, outputs) {
  const counts = new Array(outputs).fill(0);
  for (const report of draws) counts[report] += 1;
  return counts.map((count) => count / Math.max(1, draws.length));
}

/** What went wrong, keyed by the name of the error, for the page's user rather than its author. */
const PROBLEMS = {
  BudgetExceeded:
    "This browser has no privacy budget left for this site, or its record of it is damaged. " +
    "Nothing was sent.",
  EntropyUnavailable:
    "This browser offers no secure randomness to this page. Nothing was sent.",
  InvalidBatch: "This site did not accept the report. Nothing was counted.",
  InvalidSurvey: "This survey is damaged, so this page does not show it. Nothing was sent.",
  MemoryUnavailable:
    "This browser does not let this page keep a record of your answer: storage is blocked, full " +
    "or not persistent. Nothing was sent.",
  NotDelivered: "This site cannot be reached, or accepts no answers now. Try again later.",
  PrivacyViolation:
    "This survey breaks its own promise, so this page does not show it. Nothing was sent.",
  ReportRejected: "This site did not accept the report. Nothing was counted.",
  SfumatoError:
    "Part of this page did not load, or was modified in transit. Nothing was sent.",
  UnknownValue: "This survey has no such answer. Nothing was sent.",
  WrongSurvey: "This survey is closed, or this site does not have it. Nothing was counted.",
};
const UNKNOWN_PROBLEM =
  "Something went wrong on this page. Reload it to see whether your answer was sent.";

/** Return a sentence that explains an error to the user. */
export function problemSentence({ name }) {
  return Object.hasOwn(PROBLEMS, name) ? PROBLEMS[name] : UNKNOWN_PROBLEM;
}
