/**
 * Contexts: which pairs of symbols must look alike, and how much.
 *
 * A channel Q keeps a context when `Q(y|x) ≤ exp(E[x, x2]) · Q(y|x2)` for all symbols x, x2 and all reports y.
 *
 *     epsilon(x, x2)   E[x, x2] for x ≠ x2
 *     classOf(x)       the group of x, in contexts of groups
 *     entries          every E[x, x2] that occurs for x ≠ x2, perhaps more than once
 *     isOpen(x)        whether E[x, x2] is infinite for every x2: x is sent as it is
 *     partlyOpen       whether some x has a finite E[x, x2] and an infinite one: its group may show
 */
import { canonicalText, unpackedU32 } from "./canonical.js";
import { domainOf } from "./domain.js";
import { expect, requireMemory, fieldsOf, list, readerOf } from "./fields.js";
import { positiveEpsilon } from "./odds.js";

const LARGEST_UNIFORM = 2 ** 26; // a uniform context needs no memory per symbol

/** The context that a record describes, with its domain. */
export function contextOf(record, nesting = 0) {
  const context = readerOf(record, CONTEXTS)(record, nesting);
  return { ...context, kind: record.kind, record, size: context.domain.size };
}

/** Refuse a context that would need more memory than a device has, at any depth, before anything is built. */
export function requireSize({ kind, domain, parts = [] }) {
  requireMemory(domainOf(domain).size, kind === "uniform" ? LARGEST_UNIFORM : undefined);
  list(parts).forEach(requireSize);
}

/**
 * One promise inside each group, one from each group to all others:
 *
 *     E[x, x2] = inside[g]   for x ≠ x2 in one group g,      outward[g]   for x in g and x2 elsewhere
 *
 * `of` gives each symbol its group, or is null where there is one group.
 */
export function groupedContext(domain, of, inside, outward) {
  const sizes = of ? sizesOf(of) : [domain.size];
  const others = sizes.length > 1;
  const classOf = (x) => (of ? of[x] : 0);
  const isOpen = (x) => {
    const g = classOf(x);
    return (sizes[g] < 2 || inside[g] === Infinity) && (!others || outward[g] === Infinity);
  };
  return {
    domain,
    of,
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

/** The place of each symbol inside its class, from 0. */
export function ranksWithin(of) {
  const seen = [];
  return of.map((g) => (seen[g] = (seen[g] ?? -1) + 1));
}

/** The number of symbols in each class. */
export function sizesOf(of) {
  const sizes = [];
  for (const g of of) sizes[g] = (sizes[g] ?? 0) + 1;
  return sizes;
}

/** Readers by kind; modules add theirs. */
export const CONTEXTS = {
  uniform(record) {
    const [{ epsilon }, domain] = contextFields(record, "epsilon");
    return groupedContext(domain, null, [positiveEpsilon(epsilon)], [Infinity]);
  },

  blocks(record) {
    const several = "epsilons" in record;
    const own = [several ? "epsilons" : "epsilon", ...("across" in record ? ["across"] : []), "block_of"];
    const [{ epsilon, epsilons, across, block_of }, domain] = contextFields(record, ...own);
    const of = classesOf(block_of, domain.size);
    const blocks = sizesOf(of).length;
    const texts = several ? list(epsilons, blocks) : Array(blocks).fill(epsilon);
    expect(!several || new Set(texts).size > 1, "epsilons that differ");
    expect(across !== "inf", "no across of inf");
    const outward = positiveEpsilon(across ?? "inf");
    return groupedContext(domain, of, texts.map(positiveEpsilon), Array(blocks).fill(outward));
  },
};

/** The fields of a context's record, and its domain. */
export function contextFields(record, ...own) {
  const fields = fieldsOf(record, "kind", "domain", ...own);
  return [fields, domainOf(fields.domain)];
}

/** Each symbol in one class, numbered in the order of first symbols. */
export function classesOf(text, size) {
  const of = unpackedU32(text, size);
  let seen = -1;
  const ordered = of.every((number) => number <= seen + 1 && (seen = Math.max(seen, number)) >= 0);
  expect(ordered && of.length === size, "classes in the order of first symbols");
  return of;
}

/** Whether two records are the same. */
export const sameRecord = (a, b) => canonicalText(a) === canonicalText(b);
