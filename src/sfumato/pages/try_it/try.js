/**
 * The try page: pick an answer, see what would leave the device and what anyone could conclude,
 * then send it.
 *
 * Everything happens here, in the browser. The page fetches the complete survey before the user
 * picks an answer. It sends nothing until the user presses the button, and then one report, with
 * the client that any page would use.
 */
import { Client, DEFAULT_BUDGET, Survey } from "../client/core.js";
import { watchChoice } from "./choose.js";
import {
  conclusionText,
  formatPercent,
  groupReports,
  problemSentence,
  reportShares,
} from "./explain.js";

const MAX_BARS = 40; // with more reports, they are grouped
const MANY_DRAWS = 1000;
const MAX_COMPARED = 200; // with more answers, only some are offered for comparison

const page = document.querySelector("main");
const byId = (id) => document.getElementById(id);
const baseUrl = new URL("../../", import.meta.url).href;

try {
  const survey = await Survey.load(baseUrl, { fingerprint: page.dataset.survey });
  byId("open").textContent = survey.disclosure;
  byId("open").hidden = !survey.leavesOpen;
  // The page has just stated, above the send button, what is sent unprotected.
  start(survey, new Client(survey, { url: baseUrl, allowClear: survey.leavesOpen }));
} catch (problem) {
  byId("problem").textContent = problemSentence(problem);
  byId("problem").hidden = false;
}

function start(survey, client) {
  const state = { value: null, draws: [] };
  byId("choice").hidden = false; // before a map is drawn: a hidden map has no size
  watchChoice(byId("choice"), survey, (value) => {
    Object.assign(state, { value, draws: [] });
    byId("seen").hidden = value === null;
    byId("send").hidden = value === null;
    if (value === null) return;
    offerComparisons(survey, survey.symbol(value));
    draw(1);
  });
  byId("again").addEventListener("click", () => draw(1));
  byId("many").addEventListener("click", () => draw(MANY_DRAWS));
  byId("other").addEventListener("change", () => show());
  byId("post").addEventListener("click", () => post(client, state.value));

  function draw(count) {
    const newDraws = Array.from({ length: count }, () => survey.privatize(state.value));
    state.draws = count === 1 ? newDraws : [...state.draws, ...newDraws];
    show();
  }

  function show() {
    const symbol = survey.symbol(state.value);
    const otherSymbol = Number(byId("other").value);
    const own = { name: quote(survey, symbol), row: survey.probabilities(symbol) };
    const other = { name: quote(survey, otherSymbol), row: survey.probabilities(otherSymbol) };
    const report = state.draws.at(-1);
    byId("answer").textContent = own.name;
    byId("report").textContent = report.toLocaleString("en");
    byId("outputs").textContent = survey.outputs.toLocaleString("en");
    byId("conclusion").textContent =
      survey.size > 1
        ? conclusionText(report, own.row, other.row, own.name, other.name)
        : "There is only one answer.";
    drawBars(own, other, report, state.draws);
  }
}

/** Put a label in quotation marks, and isolate its writing direction from the sentence. */
const quote = (survey, symbol) => `“\u2068${survey.label(symbol)}\u2069”`;

/** Offer answers to compare with: all if there are few, otherwise some near and distant ones. */
function offerComparisons(survey, symbol) {
  const select = byId("other");
  const previous = select.value;
  const last = survey.size - 1;
  const below = symbol + (page.dataset.columns | 0);
  let candidates = [symbol - 1, symbol + 1, below, last - symbol, 0, last];
  if (survey.size <= MAX_COMPARED) candidates = Array.from({ length: survey.size }, (_, x) => x);
  const others = [...new Set(candidates)].filter((x) => x !== symbol && x >= 0 && x <= last);
  select.replaceChildren(...others.map((x) => new Option(String(survey.label(x)), x)));
  if (others.map(String).includes(previous)) select.value = previous;
  byId("compare").hidden = others.length < 2;
}

// --- the bar chart -------------------------------------------------------------------------------

function drawBars(own, other, report, draws) {
  const isGrouped = own.row.length > MAX_BARS;
  const drawShares = draws.length >= MANY_DRAWS ? reportShares(draws, own.row.length) : null;
  const groups = isGrouped
    ? groupReports(own.row, other.row, own.name, other.name)
    : own.row.map((_, y) => ({ name: `report ${y}`, reports: [y] }));
  const rows = [own.row, other.row, drawShares];
  const sums = groups.map(({ reports }) => rows.map((row) => row && sum(reports, row)));
  const largest = Math.max(...sums.flat());
  const elements = [];
  for (const [i, { name, reports }] of groups.entries()) {
    if (!sums[i].some(Boolean)) continue; // neither answer ever gives this report
    const element = document.createElement("tr");
    if (reports.includes(report)) element.className = "drawn";
    element.append(createRowHeading(name), createBarCell(sums[i], largest));
    elements.push(element);
  }
  byId("bars").tBodies[0].replaceChildren(...elements);
  const omitted = groups.length - elements.length;
  byId("never").textContent = omitted === 1 ? "1 other report" : `${omitted} other reports`;
  byId("omitted").hidden = omitted === 0;
  byId("own-name").textContent = own.name;
  byId("other-name").textContent = other.name;
  byId("drawn-key").hidden = drawShares === null;
  byId("drawn-count").textContent = draws.length.toLocaleString("en");
  byId("grouped").hidden = !isGrouped;
}

const sum = (reports, row) => reports.reduce((total, y) => total + row[y], 0);

function createBarCell(sums, largest) {
  const cell = document.createElement("td");
  for (const [i, kind] of ["own", "other", "draws"].entries()) {
    const share = sums[i];
    if (share === null) continue;
    const bar = document.createElement("span");
    bar.className = `bar ${kind}`;
    const meter = document.createElement("meter");
    meter.setAttribute("aria-hidden", "true"); // the number next to it says the same
    Object.assign(meter, { min: 0, max: largest, value: share });
    bar.append(meter, ` ${formatPercent(share)}`);
    cell.append(bar);
  }
  return cell;
}

function createRowHeading(text) {
  const heading = document.createElement("th");
  heading.textContent = text;
  heading.scope = "row";
  return heading;
}

// --- sending -------------------------------------------------------------------------------------

async function post(client, value) {
  byId("post").disabled = true;
  try {
    const { body } = await client.prepare(value);
    if (body !== null) byId("body").textContent = body;
    // Without a body, the report was counted, and then deleted from this browser.
    byId("body").textContent ||= "The report was sent earlier. This browser keeps no copy of it.";
    byId("sent").hidden = false;
    const { delivered } = await client.answer(value);
    byId("receipt").textContent = delivered
      ? "Counted. This is all that left your device, and it is counted once: sending again sends " +
        "the same report."
      : "The aggregator is out of reach. The report waits in this browser, and is sent when the " +
        "aggregator is back.";
  } catch (problem) {
    byId("receipt").textContent = problemSentence(problem);
  } finally {
    byId("post").disabled = false;
  }
  await showSpent(client);
}

/** Show the spent budget if the ledger can be read. */
async function showSpent(client) {
  try {
    const spent = await client.spent();
    byId("spent").textContent =
      `Surveys of this site have spent ε = ${spent} of ${DEFAULT_BUDGET} in this browser.`;
    byId("spent").hidden = false;
  } catch {
    byId("spent").hidden = true;
  }
}
