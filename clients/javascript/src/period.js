/** Periods: the day, week, month or year of an answer, in UTC. Later periods sort later as text. */

const WEEK = 7 * 86_400_000;

/** Name the period of a moment; "" for a survey that people answer once. */
export function periodOf(repeat, moment) {
  if (repeat === "once") return "";
  const date = new Date(moment);
  if (repeat.every !== "week") return date.toISOString().slice(0, { day: 10, month: 7, year: 4 }[repeat.every]);
  // Weeks of ISO 8601 begin on Monday and belong to the year of their Thursday.
  date.setUTCDate(date.getUTCDate() + 3 - ((date.getUTCDay() + 6) % 7));
  const year = date.getUTCFullYear();
  const week = 1 + Math.floor((date - Date.UTC(year, 0, 1)) / WEEK);
  return `${year}-W${String(week).padStart(2, "0")}`;
}
