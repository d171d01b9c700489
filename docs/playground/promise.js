/**
 * The promise that is made about the labels: who owes what to whom.
 *
 * A promise is `{ kind, labels, of, names, epsilons, across }`. `of[x]` is the group of label x (its tier or block),
 * numbered in the order of first labels; `epsilons[g]` is what is owed in group g and `across` what is owed between
 * blocks. Every ε is the text of a decimal number, as records have it, or "inf".
 */
export const OPEN = "open";
export const SENSITIVE = "sensitive";
export const LEAST_EPSILON = 0.01;
export const MOST_EPSILON = 10;
const PLACES = 4;

/** `wish` holds the kind, "uniform", "tiers" or "blocks", and the ε that were chosen: `{ kind, epsilons, across }`. */
export function promiseOf(rows, { kind, epsilons, across }) {
  const groupOf = rows.map(({ group }) => groupName(kind, group));
  const names = [...new Set(groupOf)];
  const owed = names.map((name) => (kind === "tiers" && name === OPEN ? "inf" : epsilonOf(epsilons, kind === "blocks" ? "" : name)));
  const labels = rows.map(({ label }) => label);
  return named({ kind, labels, of: groupOf.map((name) => names.indexOf(name)), names, epsilons: owed, across });
}

/** The name of the group that a second column stands for. A label without a tier is sensitive: silence protects. */
export function groupName(kind, column) {
  if (kind === "uniform") return "";
  if (kind === "blocks") return column || "unnamed";
  return column.toLowerCase() === OPEN ? OPEN : column || SENSITIVE;
}

/** The ε of a tier by its name, or of all under "". */
export const epsilonOf = (epsilons, name) => epsilons.get(name) ?? "1";

/** A number as the text that records have for it: at most four decimals, none of them idle; "" for what is no ε. */
export function decimalText(typed) {
  const number = Number(Number(typed).toFixed(PLACES));
  return number >= LEAST_EPSILON && number <= MOST_EPSILON ? `${number}` : "";
}

/** Two kinds of tiers have names of their own: all alike are uniform, one tier beside open labels is high-low. */
function named(promise) {
  if (promise.kind !== "tiers") return promise;
  const finite = promise.epsilons.filter((epsilon) => epsilon !== "inf").length;
  if (finite !== 1) return promise;
  return { ...promise, kind: promise.names.length === 1 ? "uniform" : "high-low" };
}

/** The promise in a sentence. */
export function inWords({ kind, labels, names, epsilons, across, of }) {
  const protectedLabels = of.filter((g) => epsilons[g] !== "inf").length;
  if (kind === "uniform") return `Every label is protected against every other with ε = ${epsilons[0]}.`;
  if (kind === "high-low") {
    const epsilon = epsilons.find((text) => text !== "inf");
    const who = protectedLabels === 1 ? "1 sensitive label is" : `${protectedLabels} sensitive labels are`;
    return `${who} protected against every other with ε = ${epsilon}. A report may prove one of the ${labels.length - protectedLabels} open labels.`;
  }
  if (kind === "blocks") {
    const between = across === "inf" ? "a report may show the block" : `across blocks ε = ${across}`;
    return `${count(names.length, "block")}: ε = ${epsilons[0]} inside each; ${between}.`;
  }
  if (!protectedLabels) return "Every label is open: nothing is promised, and a report is the answer itself.";
  const owed = names.map((name, g) => `${name} ${epsilons[g] === "inf" ? "∞" : epsilons[g]}`);
  return `${count(names.length, "tier")}, each with its own ε against every other label: ${owed.join(", ")}.`;
}

const count = (number, noun) => `${number} ${noun}${number === 1 ? "" : "s"}`;
