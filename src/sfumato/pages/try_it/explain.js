/** What a report says, and what it does not: numbers and sentences for the try page. */

/** Format a share: `0.366` as "36.6 %". Small shares keep two digits. */
export function percent(share) {
  if (share === 0) return "0 %";
  const places = share >= 0.1 ? 1 : Math.min(8, 1 - Math.floor(Math.log10(share * 100)));
  return `${(share * 100).toFixed(places)} %`;
}

/**
 * Format the odds of p against q as "73:27", for someone who thought both equally likely.
 * The odds are 100:0 only if they are certain.
 */
export function odds(p, q) {
  const share = p / (p + q);
  const whole = Math.round(share * 100);
  const certain = p === 0 || q === 0;
  if (!certain && whole === 100) return "more than 99:1";
  if (!certain && whole === 0) return "less than 1:99";
  return `${whole}:${100 - whole}`;
}

/** Find the report that favours the first row most: the one with the largest share p/(p + q). */
export function strongest(own, other) {
  let best = { p: 1, q: 1 };
  for (let y = 0; y < own.length; y++) {
    if (own[y] > 0 && own[y] * best.q > best.p * other[y]) best = { p: own[y], q: other[y] };
  }
  return best;
}

/** Say what someone can conclude who sees this report and wavers between two answers. */
export function conclusion(report, own, other, ownName, otherName) {
  const p = own[report];
  const q = other[report];
  const sent = `With your answer, ${ownName}, this report is sent with probability ${percent(p)}`;
  if (q === 0) {
    return (
      `${sent}; with ${otherName}, never. Between these two answers the survey promises nothing: ` +
      "this report tells them apart."
    );
  }
  const best = strongest(own, other);
  const limit =
    best.q === 0
      ? "another report could tell these two apart for certain"
      : `no report can say more than ${odds(best.p, best.q)}`;
  return (
    `${sent}; with ${otherName}, ${percent(q)}. Someone who thought both equally likely now ` +
    `says ${odds(p, q)}, and ${limit}.`
  );
}

/** Group the reports by which of two answers each favours; leave out empty groups. */
export function sides(own, other, ownName, otherName) {
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

/** Return the share of the draws that gave each report. */
export function shares(draws, outputs) {
  const counts = new Array(outputs).fill(0);
  for (const report of draws) counts[report] += 1;
  return counts.map((count) => count / Math.max(1, draws.length));
}

/** What went wrong, by the name of the error: for the person who uses the page, not its author. */
const PROBLEMS = {
  BudgetExceeded:
    "This browser has no privacy budget left for this site, or its record of it is damaged. " +
    "Nothing was sent.",
  EntropyUnavailable:
    "This browser offers no secure randomness to this page. Nothing was sent.",
  InvalidBatch: "This site did not accept the report. Nothing was counted.",
  InvalidSurvey: "This survey is damaged, so this page does not ask it. Nothing was sent.",
  MemoryUnavailable:
    "This browser does not let this page keep a record of your answer: storage is blocked, full " +
    "or not sure to last. Nothing was sent.",
  NotDelivered: "This site cannot be reached, or takes no answers now. Try again later.",
  PrivacyViolation:
    "This survey breaks its own promise, so this page does not ask it. Nothing was sent.",
  ReportRejected: "This site did not accept the report. Nothing was counted.",
  SfumatoError:
    "A part of this page did not load, or was changed on the way. Nothing was sent.",
  UnknownValue: "This survey has no such answer. Nothing was sent.",
  WrongSurvey: "This survey is closed, or this site does not have it. Nothing was counted.",
};
const UNKNOWN_PROBLEM =
  "Something went wrong in this page. Load it again to see whether your answer was sent.";

/** Return a sentence for people about an error. */
export function problemSentence({ name }) {
  return Object.hasOwn(PROBLEMS, name) ? PROBLEMS[name] : UNKNOWN_PROBLEM;
}
