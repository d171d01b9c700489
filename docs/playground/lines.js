/**
 * What is pasted: one label per line, or the first column of a CSV; a second column names the label's tier or block.
 */
export const MOST_LABELS = 24;
const LONGEST_LABEL = 200;
const SEPARATOR = /[,;\t]/;
const UNWRITABLE = /[\u0000-\u001f\u007f\ud800-\udfff]/u; // with the flag u, whole characters above U+FFFF do not match

/** The rows `{ label, group, line }` of a text, and what is wrong with it: a sentence, or "". */
export function readLines(text) {
  const rows = text.split(/\r?\n/).map((typed, line) => {
    const [label = "", group = ""] = fieldsOf(typed);
    return { label: label.normalize("NFC"), group: group.normalize("NFC"), line };
  });
  const named = rows.filter(({ label }) => label);
  if (named[0]?.label.toLowerCase() === "label") named.shift(); // the head of a CSV
  return { rows: named, problem: problemOf(named) };
}

/** The text with another tier or block for the label on one of its lines. */
export function withGroup(text, line, group) {
  const lines = text.split(/\r?\n/);
  lines[line] = [fieldsOf(lines[line])[0], group].map(quoted).join(", ");
  return lines.join("\n");
}

/** The fields of one line of CSV; `"a, b"` is one field, and `""` inside it is a quotation mark. */
function fieldsOf(line) {
  const fields = [];
  let [rest, more] = [line, true];
  while (more) {
    const [whole, inQuotes, plain] = /^\s*(?:"((?:[^"]|"")*)"[^,;\t]*|([^,;\t]*))/.exec(rest);
    fields.push((inQuotes?.replaceAll('""', '"') ?? plain).trim());
    more = whole.length < rest.length;
    rest = rest.slice(whole.length + 1);
  }
  return fields;
}

const quoted = (field) => (SEPARATOR.test(field) || field.startsWith('"') ? `"${field.replaceAll('"', '""')}"` : field);

function problemOf(rows) {
  const labels = rows.map(({ label }) => label);
  if (rows.length < 2) return "Enter at least two labels, one per line.";
  if (rows.length > MOST_LABELS) return `The playground takes up to ${MOST_LABELS} labels; you entered ${rows.length}. Sfumato itself takes millions.`;
  const twice = labels.find((label, x) => labels.indexOf(label) < x);
  if (twice !== undefined) return `Duplicate label “${twice}”. Remove one of the two.`;
  const strange = rows.find(({ label, group }) => UNWRITABLE.test(label + group) || Math.max(label.length, group.length) > LONGEST_LABEL);
  if (strange) return `Line ${strange.line + 1} contains a character that is not allowed in a label, or is too long. Change it.`;
  return "";
}
