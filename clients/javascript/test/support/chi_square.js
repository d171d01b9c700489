/** Pearson's test with the exact tail of the chi-square distribution. */

/** P(χ² with `freedom` degrees > statistic): the regularised upper incomplete gamma function. */
export function upperTail(statistic, freedom) {
  const [a, x] = [freedom / 2, statistic / 2];
  if (x <= 0) return 1;
  const scale = Math.exp(a * Math.log(x) - x - logGamma(a));
  return x < a + 1 ? 1 - scale * series(a, x) : scale * continuedFraction(a, x);
}

/** Σ x^n / (a (a+1) … (a+n)). */
function series(a, x) {
  let [term, sum] = [1 / a, 1 / a];
  for (let n = 1; term > sum * 1e-17; n++) sum += term *= x / (a + n);
  return sum;
}

/** 1/(x+1−a− 1(1−a)/(x+3−a− 2(2−a)/(x+5−a− …))), from its far end. */
function continuedFraction(a, x) {
  let tail = 0;
  for (let n = 500; n > 0; n--) tail = (n * (n - a)) / (x + 2 * n + 1 - a - tail);
  return 1 / (x + 1 - a - tail);
}

/** Γ(a) for whole and half a, by Γ(a + 1) = a Γ(a). */
function logGamma(a) {
  let log = a % 1 ? Math.log(Math.PI) / 2 : 0;
  for (let i = a % 1 || 1; i < a - 1e-9; i++) log += Math.log(i);
  return log;
}

/** The chance of counts at least as far from what the probabilities say; 0 if something impossible happened. */
export function fit(counts, probabilities) {
  const n = counts.reduce((sum, count) => sum + count, 0);
  if (counts.some((count, y) => count && !probabilities[y])) return 0;
  const possible = counts.flatMap((count, y) => (probabilities[y] ? [{ count, expected: n * probabilities[y] }] : []));
  const statistic = possible.reduce((sum, { count, expected }) => sum + (count - expected) ** 2 / expected, 0);
  return possible.length < 2 ? 1 : upperTail(statistic, possible.length - 1);
}
