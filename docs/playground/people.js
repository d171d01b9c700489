/**
 * How many people a channel needs, by exact variances of the unbiased estimate.
 *
 * Scores A undo the channel, `Σ_y Q(y|x2) A[x, y] = [x = x2]`. With as many reports as labels there is one A, the
 * transposed inverse of Q. For people spread like p, `q(y) = Σ_x p_x Q(y|x)` and
 *
 *     n · Var(p̂_x) = Σ_y q(y) A[x, y]² − p_x²
 *
 * Here p is uniform: all labels are equally frequent.
 */
const HALF_NORMAL = Math.sqrt(2 / Math.PI); // E|Z| of a standard normal Z

/** n · Var of each label's share. */
export function variancesOf(Q) {
  const p = 1 / Q.length;
  const inverse = inverseOf(Q);
  const q = Q[0].map((_, y) => p * Q.reduce((sum, row) => sum + row[y], 0));
  return Q.map((_, x) => q.reduce((sum, share, y) => sum + share * inverse[y][x] ** 2, 0) - p * p);
}

/** Errors that one person's report leaves; n people divide them by √n. */
export const ERRORS = {
  /** The standard error of the share that is known worst. */
  worst: (variances) => Math.sqrt(Math.max(...variances)),
  /** E TV with normal errors, ½ √(2/π) Σ_x σ_x: the share of people who are counted in the wrong place. */
  tv: (variances) => (HALF_NORMAL * variances.reduce((sum, variance) => sum + Math.sqrt(Math.max(variance, 0)), 0)) / 2,
};

/** The least number of people whose error is at most this, from the variances of one person's report. */
export function peopleFor(variances, measure, error) {
  const needed = (ERRORS[measure](variances) / error) ** 2;
  return Math.max(Math.ceil(needed * (1 - 1e-12)), 1); // a hair below, so that round numbers stay round
}

/**
 * The variances of the best mechanism that knows a single ε, so that a comparison with it promises nothing too much:
 *
 *     n · Σ_x Var = min_w (k − 1)² (we + k − w)² / (k (e − 1)² w (k − w))
 *
 * A report then speaks for w labels, and all shares are known equally well (Ye and Barg, 2018).
 */
export function classicalVariances(size, epsilon) {
  const k = size;
  const spread = k / Math.expm1(epsilon);
  const risks = Array.from({ length: k - 1 }, (_, i) => ((k - 1) ** 2 * (i + 1 + spread) ** 2) / (k * (i + 1) * (k - i - 1)));
  return Array(k).fill(Math.min(...risks) / k);
}

/** The channel without any noise. */
export const clearChannel = (size) => Array.from({ length: size }, (_, x) => Array.from({ length: size }, (_, y) => Number(x === y)));

/** The inverse by Gauss and Jordan, with pivots. */
function inverseOf(Q) {
  const k = Q.length;
  const rows = clearChannel(k).map((unit, x) => [...Q[x], ...unit]);
  for (let column = 0; column < k; column++) {
    let best = column;
    for (let x = column; x < k; x++) if (Math.abs(rows[x][column]) > Math.abs(rows[best][column])) best = x;
    [rows[column], rows[best]] = [rows[best], rows[column]];
    const pivot = rows[column][column];
    rows[column] = rows[column].map((entry) => entry / pivot);
    for (let x = 0; x < k; x++) {
      const factor = rows[x][column];
      if (x !== column && factor) rows[x] = rows[x].map((entry, y) => entry - factor * rows[column][y]);
    }
  }
  return rows.map((row) => row.slice(k));
}
