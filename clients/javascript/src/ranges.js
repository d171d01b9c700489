/**
 * Proof by odds, for mechanisms whose groups own ranges of reports.
 *
 * Symbols of one range have odds of at most high/low on its reports. Against anybody outside, a symbol has at most
 * high/cover on the reports of its own range, and cover/low on those of another. Leftover words are on a report that
 * both share, and bring odds closer to 1. A symbol without a range owes nothing to other groups.
 */
import { atMost, withinOdds } from "./odds.js";

/** Whether these odds keep a grouped context: `ranges` are { group, high, low, cover }. */
export function rangesKeep(ranges, { sizes, inside, outward }) {
  const groups = [...outward.keys()].sort((g, g2) => (atMost(outward[g], outward[g2]) ? -1 : 1));
  return ranges.every(({ group, high, low, cover }) => {
    if (sizes[group] > 1 && !withinOdds(high, low, inside[group])) return false;
    const stingiest = groups.find((g) => g !== group); // of the other groups, the one that owes the least
    if (stingiest === undefined) return true;
    return withinOdds(high, cover, outward[group]) && withinOdds(cover, low, outward[stingiest]);
  });
}
