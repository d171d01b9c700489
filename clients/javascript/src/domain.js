/**
 * Domains: all labels that a question can be answered with, in order (value → label → symbol).
 *
 *     size           the number of symbols
 *     find(value)    the symbol of a value: that of `other` if the value is unknown or missing, or −1 without one
 *     label(x)       the label of a symbol
 */
import { UnknownValue } from "./errors.js";
import { expect, fieldsOf, LARGEST, list, readerOf, wholeNumber } from "./fields.js";

/** The domain that a record describes. */
export const domainOf = (record) => readerOf(record, DOMAINS)(record);

/** The symbol of a person's value. The error never holds the value. */
export function symbolOf(domain, value) {
  const symbol = domain.find(value);
  if (symbol < 0) throw new UnknownValue("the survey has no such label, and none for others");
  return symbol;
}

/** Readers by kind; modules add theirs. */
export const DOMAINS = {
  labels(record) {
    const { labels, other } = fieldsOf(record, "kind", "labels", "other");
    return labelDomain(list(labels), other);
  },

  /** The integers start … start + size − 1. */
  range(record) {
    const { size, start } = fieldsOf(record, "kind", "size", "start");
    wholeNumber(size, 1, LARGEST);
    wholeNumber(start, -(2 ** 52), 2 ** 52);
    const find = (value) => (Number.isInteger(value) && value >= start && value < start + size ? value - start : -1);
    return { size, find, label: (x) => start + x };
  },
};

/** Labels, text or integers. */
export function labelDomain(labels, other) {
  labels.forEach(requireLabel);
  const symbols = new Map(labels.map((label, x) => [label, x]));
  expect(labels.length && symbols.size === labels.length, "labels that differ");
  expect(other === null || symbols.has(other), "one of the labels for other");
  const find = (value) =>
    symbols.get(typeof value === "string" ? value.normalize() : value) ?? symbols.get(other) ?? -1;
  return { size: labels.length, find, label: (x) => labels[x] };
}

/** Throw unless it is text, not empty, or an integer. */
export function requireLabel(label) {
  expect(typeof label === "string" ? label : Number.isSafeInteger(label), "text or integers as labels");
}
