/** What a survey sends unprotected: the labels, and a description for the people who answer. */

const MAX_LABELS = 30;

/** Count the symbols that are sent as they are, and list the labels of the first ones. */
export function unprotectedLabels({ leavesOpen, size, context }, limit = MAX_LABELS) {
  const labels = [];
  let count = 0;
  for (let x = 0; leavesOpen && x < size; x++) {
    if (!context.isOpen(x)) continue;
    if (labels.length < limit) labels.push(context.domain.label(x));
    // A uniform context that leaves one pair open leaves all open, and may have millions of symbols.
    else if (context.kind === "uniform") return { labels, count: size };
    count++;
  }
  return { labels, count };
}

/** Describe it in one or two English sentences; "" if all answers are protected from each other. */
export function disclosureOf(survey) {
  const { leavesOpen, size, context } = survey;
  if (!leavesOpen) return "";
  const { labels, count } = unprotectedLabels(survey);
  if (count === size) return "Every answer is sent as it is.";
  // The marks isolate a label from the writing direction of the text around it.
  const shown = labels.map((label) => `\u2068${printable(`${label}`)}\u2069`).join(", ");
  const more = count > labels.length ? ` and ${(count - labels.length).toLocaleString("en")} more` : "";
  const open = count ? `These answers are sent as they are: ${shown}${more}.` : "";
  return `${open} ${context.partlyOpen ? "A report may show which group of answers yours belongs to." : ""}`.trim();
}

/** Escape characters that could move the cursor, hide text or reverse it: labels are untrusted. */
const printable = (text) => text.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, escapeCharacter);

function escapeCharacter(character) {
  const digits = character.codePointAt(0).toString(16);
  if (digits.length < 3) return `\\x${digits.padStart(2, "0")}`;
  return digits.length < 5 ? `\\u${digits.padStart(4, "0")}` : `\\U${digits.padStart(8, "0")}`;
}
