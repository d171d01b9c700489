/**
 * Proof by odds, for mechanisms whose groups own ranges of reports.
 *
 * Two symbols of one range have odds of at most high/low on its reports. A symbol against one outside has odds of at
 * most high/cover on the reports of its own range, and cover/low on those of the other range. Leftover words are on a
 * report that both share, and bring odds closer to 1. A symbol without a range must owe nothing to any other.
 */
import { atMost, withinOdds } from "./odds.js";

/** Whether these odds keep a grouped context: `ranges` are { group, high, low, cover }. */
export function rangesKeep(ranges, { sizes, inside, outward }) {
  const groups = [...sizes.keys()];
  const strictest = (among) => among.reduce((g, g2) => (atMost(outward[g], outward[g2]) ? g : g2), among[0]);
  const first = strictest(groups);
  const second = strictest(groups.filter((g) => g !== first)); // undefined if there is only one group
  const owners = new Set(ranges.map(({ group }) => group));
  const owesNothing = (g) =>
    (sizes[g] < 2 || inside[g] === Infinity) && (second === undefined || outward[g] === Infinity);
  const keepsPromise = ({ group, high, low, cover }) => {
    if (sizes[group] > 1 && !withinOdds(high, low, inside[group])) return false;
    const other = group === first ? second : first; // of the other groups, the one that owes the least
    if (other === undefined) return true;
    return withinOdds(high, cover, outward[group]) && withinOdds(cover, low, outward[other]);
  };
  return groups.every((g) => owners.has(g) || owesNothing(g)) && ranges.every(keepsPromise);
}
