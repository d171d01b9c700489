/**
 * Contexts: which pairs of symbols must look alike, and how much.
 *
 * A channel Q keeps a context when `Q(y|x) ≤ exp(E[x, x2]) · Q(y|x2)` for all symbols x, x2 and all reports y.
 * `epsilon(x, x2)` is E[x, x2] for x ≠ x2. `classOf(x)` names what E looks at: of two symbols in one class, E says the
 * same towards all others.
 */
import { canonicalText, unpackedU32 } from "./canonical.js";
import { domainOf } from "./domain.js";
import { demand, fieldsOf, list, readerOf } from "./fields.js";
import { atMost, exactNumber, LARGEST_EPSILON, positiveEpsilon, product } from "./odds.js";

const DEEPEST_UNION = 8;
const LARGEST_MATRIX = 4096;

/** The context that a record describes, with its domain. */
export function contextOf(record, nesting = 0) {
  const context = readerOf(record, READERS)(record, nesting);
  return { ...context, kind: record.kind, record, size: context.domain.size };
}

/**
 * One promise inside each group, one from each group to all others:
 *
 *     E[x, x2] = inside[g]   for x ≠ x2 in one group g,      outward[g]   for x in g and x2 elsewhere
 *
 * `of` gives each symbol its group, or is null where there is one group.
 */
function groupedContext(domain, of, inside, outward) {
  const classOf = (x) => (of ? of[x] : 0);
  const epsilon = (x, x2) => (classOf(x) === classOf(x2) ? inside : outward)[classOf(x)];
  return { domain, of, inside, outward, classOf, epsilon };
}

/** E written out. */
const matrixContext = (domain, E) => ({ domain, E, classOf: (x) => x, epsilon: (x, x2) => E[x][x2] });

/** Blocks that a report may show, with any context inside each. */
function unionContext(domain, of, parts) {
  const rank = ranksWithin(of);
  const classOf = (x) => `${of[x]}/${parts[of[x]].classOf(rank[x])}`;
  const epsilon = (x, x2) => (of[x] === of[x2] ? parts[of[x]].epsilon(rank[x], rank[x2]) : Infinity);
  return { domain, of, parts, classOf, epsilon };
}

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

const READERS = {
  uniform(record) {
    const [{ epsilon }, domain] = contextFields(record, "epsilon");
    return groupedContext(domain, null, [positiveEpsilon(epsilon)], [Infinity]);
  },

  "high-low"(record) {
    const [{ epsilon, sensitive }, domain] = contextFields(record, "epsilon", "sensitive");
    const listed = unpackedU32(sensitive, domain.size);
    demand(
      listed.every((x, i) => !i || x > listed[i - 1]),
      "symbols in ascending order",
    );
    const isSensitive = new Uint8Array(domain.size);
    for (const x of listed) isSensitive[x] = 1;
    return { ...grouped(domain, isSensitive, [Infinity, positiveEpsilon(epsilon)]), isSensitive };
  },

  blocks(record) {
    const several = "epsilons" in record;
    const own = [several ? "epsilons" : "epsilon", ...("across" in record ? ["across"] : []), "block_of"];
    const [{ epsilon, epsilons, across, block_of }, domain] = contextFields(record, ...own);
    const of = classesOf(block_of, domain.size);
    const blocks = sizesOf(of).length;
    const texts = several ? list(epsilons, blocks) : Array(blocks).fill(epsilon);
    demand(!several || new Set(texts).size > 1, "epsilons that differ");
    demand(across !== "inf", "no across of inf");
    const outward = positiveEpsilon(across ?? "inf");
    return groupedContext(domain, of, texts.map(positiveEpsilon), Array(blocks).fill(outward));
  },

  tiers(record) {
    const [{ epsilons, tier_of }, domain] = contextFields(record, "epsilons", "tier_of");
    const of = classesOf(tier_of, domain.size);
    const texts = list(epsilons, sizesOf(of).length);
    const distinct = [...new Set(texts)]; // tiers of equal ε are one group
    return grouped(
      domain,
      of.map((tier) => distinct.indexOf(texts[tier])),
      distinct.map(positiveEpsilon),
    );
  },

  metric(record) {
    const [fields, domain] = contextFields(record, "epsilon", "distances");
    const epsilon = positiveEpsilon(fields.epsilon);
    const d = squareOf(fields.distances, domain.size);
    const symmetric = fields.distances.every((row, x) => row.every((text, x2) => text === fields.distances[x2][x]));
    demand(symmetric, "symmetric distances");
    return matrixContext(
      domain,
      d.map((row) => row.map((distance) => product(epsilon, distance))),
    );
  },

  matrix(record) {
    const [{ matrix }, domain] = contextFields(record, "matrix");
    const E = squareOf(matrix, domain.size);
    demand(
      E.flat().every((entry) => entry === Infinity || atMost(entry, LARGEST_EPSILON)),
      "entries up to 40, or inf",
    );
    return matrixContext(domain, E);
  },

  union(record, nesting) {
    demand(nesting < DEEPEST_UNION, "fewer nested unions");
    const [fields, domain] = contextFields(record, "parts", "block_of");
    const of = classesOf(fields.block_of, domain.size);
    const sizes = sizesOf(of);
    const parts = list(fields.parts, sizes.length).map((part) => contextOf(part, nesting + 1));
    // A part speaks of the symbols 0, 1, … of its block; labels belong to the union.
    const numbered = parts.every((part, j) =>
      sameRecord(part.record.domain, { kind: "range", size: sizes[j], start: 0 }),
    );
    demand(numbered, "parts over ranges from 0");
    return unionContext(domain, of, parts);
  },
};

function contextFields(record, ...own) {
  const fields = fieldsOf(record, "kind", "domain", ...own);
  return [fields, domainOf(fields.domain)];
}

/** Classes of symbols that owe all others one ε, renumbered in the order of first symbols. */
function grouped(domain, classOf, promised) {
  const order = [...new Set(classOf)];
  const owed = order.map((number) => promised[number]);
  return groupedContext(
    domain,
    Uint32Array.from(classOf, (number) => order.indexOf(number)),
    owed,
    owed,
  );
}

/** Each symbol in one class, numbered in the order of first symbols. */
function classesOf(text, size) {
  const of = unpackedU32(text, size);
  let seen = -1;
  const ordered = of.every((number) => number <= seen + 1 && (seen = Math.max(seen, number)) >= 0);
  demand(ordered && of.length === size, "classes in the order of first symbols");
  return of;
}

function squareOf(rows, size) {
  const square = list(rows, size).map((row) => list(row, size).map(exactNumber));
  demand(size <= LARGEST_MATRIX && square.every((row, x) => row[x].p === 0n), "zeros on the diagonal");
  return square;
}

/** A pair for every two classes of symbols that the contexts tell apart, and one inside each class. */
export function* typicalPairs(contexts) {
  const classes = new Map();
  const [{ size }] = contexts;
  const alike = contexts.every(({ kind }) => kind === "uniform"); // all symbols are, and they may be 2^31
  for (let x = 0; x < size && !(alike && x > 1); x++) {
    const name = contexts.map((context) => context.classOf(x)).join();
    const members = classes.get(name) ?? classes.set(name, []).get(name);
    if (members.length < 2) members.push(x);
  }
  const typical = [...classes.values()].flat();
  for (const x of typical) for (const x2 of typical) if (x !== x2) yield [x, x2];
}

/** Whether two records are the same. */
export const sameRecord = (a, b) => canonicalText(a) === canonicalText(b);
