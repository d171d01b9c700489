/**
 * Channels for few labels, by closed forms: one report per label, and `Q[x][y]` is how often x sends the report of y.
 *
 * They are simple ones. The software chooses among more, and usually finds one that needs fewer people.
 */
const WORD_BITS = 64n;
const SCALE = 2 ** 64;
// Rounded towards privacy: the formulas aim a billionth below each ε, so that what rounding does to the odds stays
// inside the promise. Nobody has to believe it: the client compares the integers with E.
const AIM = 1 - 1e-9;

/** The channel of a promise: `{ Q, how }`, with a sentence on how it works. */
export function channelOf({ kind, of, epsilons, across }) {
  const inside = epsilons.map(aimed);
  if (kind !== "blocks") return coverChannel(of.map((g) => inside[g]));
  if (across === "inf") return { Q: openBlocks(of, inside), how: "Randomised response within the answer’s own block." };
  const outward = aimed(across);
  const sizes = inside.map((_, g) => of.filter((other) => other === g).length);
  const Q = coveredBlocks(of, sizes, inside, outward);
  if (Q) return { Q, how: "Most often the answer itself, less often another label of its block, least often a label of another block." };
  const smallest = Math.min(outward, ...inside.filter((_, g) => sizes[g] > 1));
  const how = "Plain randomised response with the smallest ε: with this promise across blocks, no other channel would gain more.";
  return { ...coverChannel(of.map(() => smallest)), how };
}

/** Q in integers over words of 64 bits, as the text that records have; what rounding leaves goes to the own report. */
export function tableRows(Q) {
  return Q.map((row, x) => {
    const counts = row.map((probability) => BigInt(Math.floor(probability * SCALE)));
    counts[x] += (1n << WORD_BITS) - counts.reduce((sum, more) => sum + more);
    return counts.map(String);
  });
}

const aimed = (epsilon) => (epsilon === "inf" ? Infinity : Number(epsilon) * AIM);

/**
 * Every label x owes all others ε_x, `inf` if it is open:
 *
 *     Q(y|x) = β·[x = y] + c_y,     c_y = β/(e^ε_y − 1),     β = 1/(1 + Σ_y 1/(e^ε_y − 1))
 *
 * With probability β the answer itself, else a cover answer. On report y the odds are (β + c_y)/c_y = e^ε_y. It is
 * k-ary randomised response where all ε agree, and the high-low and group responses with one report per label.
 */
function coverChannel(epsilon) {
  const weights = epsilon.map((ε) => 1 / Math.expm1(ε));
  const β = 1 / (1 + sum(weights));
  const Q = epsilon.map((_, x) => weights.map((weight, y) => β * (weight + (x === y))));
  const percent = (100 * β).toPrecision(3);
  const cover = new Set(weights.filter((weight) => weight)).size > 1 ? "more often one of a better protected label" : "drawn in the same way for everyone";
  return { Q, how: β === 1 ? "The answer itself." : `The answer itself with probability β = ${percent}%, otherwise a cover answer, ${cover}.` };
}

/** Randomised response inside each block; the block is shown. */
function openBlocks(of, inside) {
  return of.map((g, x) => {
    const e = Math.exp(inside[g]);
    const total = e - 1 + of.filter((j) => j === g).length;
    return of.map((j, y) => (j === g ? (x === y ? e : 1) / total : 0));
  });
}

/**
 * Blocks with a promise across, the group response with randomised response inside (docs/proofs/groups.md):
 *
 *     Q(y|x) = v_j/b_j · ( A if x = y;   B if x is in the block j of y;   1 if x is elsewhere )
 *     A = e^ε_out,  B = e^(ε_out − ε_in),  g_j = (A + (b_j − 1)·B)/b_j − 1,  β = 1/(1 + Σ 1/g_j),  v_j = β/g_j
 *
 * The way over another block is an ε_in of 2·ε_out. `null` where a gain g_j is not above 0.
 */
function coveredBlocks(of, sizes, inside, outward) {
  const A = Math.exp(outward);
  const B = inside.map((ε) => Math.exp(outward - (sizes.length > 1 ? Math.min(ε, 2 * outward) : ε)));
  const gains = sizes.map((b, j) => (A + (b - 1) * B[j]) / b - 1);
  if (gains.some((gain) => !(gain > 0))) return null;
  const β = 1 / (1 + sum(gains.map((gain) => 1 / gain)));
  const unit = gains.map((gain, j) => β / gain / sizes[j]);
  return of.map((g, x) => of.map((j, y) => unit[j] * (x === y ? A : g === j ? B[j] : 1)));
}

const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
