/**
 * Domains: all possible answers to a question, in order (value → label → symbol).
 *
 *     size           the number of symbols
 *     find(value)    the symbol of a value. If the value is unknown or missing: the symbol of `other`, or −1
 *     label(x)       the label of a symbol
 */
import { UnknownValue } from "./errors.js";
import { expect, requireFields, MAX_SIZE, list, readerOf, requireInteger } from "./fields.js";

/** Read a domain from its record. */
export const domainOf = (record) => readerOf(record, DOMAINS)(record);

/** Return the symbol of a person's value. The error never contains the value. */
export function symbolOf(domain, value) {
  const symbol = domain.find(value);
  if (symbol < 0) throw new UnknownValue("the survey has no such label, and none for others");
  return symbol;
}

/** The reader of each kind. Modules add theirs. */
export const DOMAINS = {
  labels(record) {
    const { labels, other } = requireFields(record, "kind", "labels", "other");
    return labelDomain(list(labels), other);
  },

  /** The integers start … start + size − 1. */
  range(record) {
    const { size, start } = requireFields(record, "kind", "size", "start");
    requireInteger(size, 1, MAX_SIZE);
    requireInteger(start, -(2 ** 52), 2 ** 52);
    const find = (value) => (Number.isInteger(value) && value >= start && value < start + size ? value - start : -1);
    return { size, find, label: (x) => start + x };
  },
};

/** A domain of labels: text or integers. */
export function labelDomain(labels, other) {
  labels.forEach(requireLabel);
  const symbols = new Map(labels.map((label, x) => [label, x]));
  expect(labels.length && symbols.size === labels.length, "distinct labels");
  expect(other === null || symbols.has(other), "one of the labels for other");
  const find = (value) =>
    symbols.get(typeof value === "string" ? value.normalize() : value) ?? symbols.get(other) ?? -1;
  return { size: labels.length, find, label: (x) => labels[x] };
}

/** Throw unless the label is nonempty text or an integer. */
export function requireLabel(label) {
  expect(typeof label === "string" ? label : Number.isSafeInteger(label), "text or integers as labels");
}
