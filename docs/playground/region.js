/**
 * Which errors somebody makes who knows that the answer was x or x2 and guesses which from the report (Theorem 1 of
 * the paper). Points are [false alarm, miss]: says x when it was x2; says x2 when it was x.
 *
 *     P_FA + e^E[x2, x] · P_MD ≥ 1     and     e^E[x, x2] · P_FA + P_MD ≥ 1
 */
const ALIKE = 1e-9;

/** The edge of what a promise a = E[x, x2], b = E[x2, x] allows: from "never says x" over the corner to "always". */
export function promisedEdge(a, b) {
  const D = -Math.expm1(-(a + b));
  return [[0, 1], [(-Math.exp(-a) * Math.expm1(-b)) / D, (-Math.exp(-b) * Math.expm1(-a)) / D], [1, 0]];
}

/** The edge of what two rows of a channel allow: the likelihood-ratio tests (Neyman, Pearson 1933). */
export function realisedEdge(row, row2) {
  const ratio = (y) => (row2[y] ? row[y] / row2[y] : Infinity);
  const sent = [...row.keys()].filter((y) => row[y] || row2[y]).sort((y, y2) => order(ratio(y), ratio(y2)));
  const points = [[0, 1]];
  let [falseAlarm, miss, last] = [0, 1, null];
  for (const y of sent) {
    [falseAlarm, miss] = [falseAlarm + row2[y], miss - row[y]];
    if (last !== null && alike(ratio(y), last)) points.pop(); // reports that speak alike are one step of the edge
    points.push([falseAlarm, Math.max(miss, 0)]);
    last = ratio(y);
  }
  return points;
}

const order = (ratio, ratio2) => (ratio === ratio2 ? 0 : ratio < ratio2 ? 1 : -1);
const alike = (ratio, ratio2) => ratio === ratio2 || (ratio2 < Infinity && Math.abs(ratio - ratio2) <= ALIKE * ratio2);
