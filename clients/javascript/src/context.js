/**
 * Contexts: which pairs of symbols must look alike, and how much.
 *
 * A channel Q keeps a context when `Q(y|x) ≤ exp(E[x, x2]) · Q(y|x2)` for all symbols x, x2 and all reports y.
 *
 *     epsilon(x, x2)   E[x, x2] for x ≠ x2
 *     classOf(x)       the group of x, in contexts of groups
 *     entries          every E[x, x2] that occurs for x ≠ x2, perhaps more than once
 *     isOpen(x)        whether E[x, x2] is infinite for every x2: x is sent as it is
 *     partlyOpen       whether some x has both a finite and an infinite E[x, x2]: a report may reveal its group
 */
import { canonicalText, unpackU32 } from "./canonical.js";
import { domainOf } from "./domain.js";
import { expect, requireMemory, requireFields, list, readerOf } from "./fields.js";
import { positiveEpsilon } from "./odds.js";

const MAX_UNIFORM = 2 ** 26; // a uniform context needs no memory per symbol

/** Read a context, with its domain, from its record. */
export function contextOf(record, nesting = 0) {
  const context = readerOf(record, CONTEXTS)(record, nesting);
  return { ...context, kind: record.kind, record, size: context.domain.size };
}

/** Refuse a context that needs too much memory, at any depth, before building anything. */
export function requireSize({ kind, domain, parts = [] }) {
  requireMemory(domainOf(domain).size, kind === "uniform" ? MAX_UNIFORM : undefined);
  list(parts).forEach(requireSize);
}

/**
 * A context with one promise inside each group, and one from each group to all others:
 *
 *     E[x, x2] = inside[g]   for x ≠ x2 in one group g,      outward[g]   for x in g and x2 elsewhere
 *
 * `groupOf` has the group of each symbol, or is null if there is only one group.
 */
export function groupedContext(domain, groupOf, inside, outward) {
  const sizes = groupOf ? sizesOf(groupOf) : [domain.size];
  const others = sizes.length > 1;
  const classOf = (x) => (groupOf ? groupOf[x] : 0);
  const isOpen = (x) => {
    const g = classOf(x);
    return (sizes[g] < 2 || inside[g] === Infinity) && (!others || outward[g] === Infinity);
  };
  return {
    domain,
    groupOf,
    sizes,
    inside,
    outward,
    classOf,
    epsilon: (x, x2) => (classOf(x) === classOf(x2) ? inside : outward)[classOf(x)],
    entries: [...inside.filter((_, g) => sizes[g] > 1), ...(others ? outward : [])],
    isOpen,
    partlyOpen: others && sizes.some((size, g) => size > 1 && isInfinite(inside[g]) !== isInfinite(outward[g])),
  };
}

const isInfinite = (epsilon) => epsilon === Infinity;

/** Return the rank of each symbol inside its class, from 0. */
export function ranksWithin(groupOf) {
  const seen = [];
  return groupOf.map((g) => (seen[g] = (seen[g] ?? -1) + 1));
}

/** Return the number of symbols in each class. */
export function sizesOf(groupOf) {
  const sizes = [];
  for (const g of groupOf) sizes[g] = (sizes[g] ?? 0) + 1;
  return sizes;
}

/** The reader of each kind. Modules add theirs. */
export const CONTEXTS = {
  uniform(record) {
    const [{ epsilon }, domain] = contextFields(record, "epsilon");
    return groupedContext(domain, null, [positiveEpsilon(epsilon)], [Infinity]);
  },

  blocks(record) {
    const several = "epsilons" in record;
    const own = [several ? "epsilons" : "epsilon", ...("across" in record ? ["across"] : []), "block_of"];
    const [{ epsilon, epsilons, across, block_of }, domain] = contextFields(record, ...own);
    const groupOf = classesOf(block_of, domain.size);
    const blocks = sizesOf(groupOf).length;
    const texts = several ? list(epsilons, blocks) : Array(blocks).fill(epsilon);
    expect(!several || new Set(texts).size > 1, "different epsilons");
    expect(across !== "inf", "no across of inf");
    const outward = positiveEpsilon(across ?? "inf");
    return groupedContext(domain, groupOf, texts.map(positiveEpsilon), Array(blocks).fill(outward));
  },
};

/** Return the fields of a context's record, and its domain. */
export function contextFields(record, ...own) {
  const fields = requireFields(record, "kind", "domain", ...own);
  return [fields, domainOf(fields.domain)];
}

/** Parse the class of each symbol. Classes are numbered in the order of their first symbols. */
export function classesOf(text, size) {
  const groupOf = unpackU32(text, size);
  let seen = -1;
  const isOrdered = groupOf.every((number) => number <= seen + 1 && (seen = Math.max(seen, number)) >= 0);
  expect(isOrdered && groupOf.length === size, "classes in the order of first symbols");
  return groupOf;
}

/** Whether two records are equal. */
export const sameRecord = (a, b) => canonicalText(a) === canonicalText(b);
