/**
 * The try page: pick an answer, see what would leave the device and what anybody could make of it,
 * then send it.
 *
 * Everything happens here, in the browser. The page fetches the whole survey before anything is
 * picked. It sends nothing until the button is pressed, and then one report, with the client that
 * any page would use.
 */
import { Client, DEFAULT_BUDGET, Survey } from "../client/core.js";
import { watchChoice } from "./choose.js";
import { conclusion, percent, problemSentence, shares, sides } from "./explain.js";

const MAX_BARS = 40; // beyond this, reports are grouped
const MANY_DRAWS = 1000;
const MAX_COMPARED = 200; // answers up to which all can be compared with

const page = document.querySelector("main");
const part = (id) => document.getElementById(id);
const base = new URL("../../", import.meta.url).href;

try {
  const survey = await Survey.load(base, { fingerprint: page.dataset.survey });
  part("open").textContent = survey.disclosure;
  part("open").hidden = !survey.leavesOpen;
  // The page has just said what is sent unprotected, above the button that sends.
  start(survey, new Client(survey, { url: base, allowClear: survey.leavesOpen }));
} catch (problem) {
  part("problem").textContent = problemSentence(problem);
  part("problem").hidden = false;
}

function start(survey, client) {
  const state = { value: null, draws: [] };
  part("choice").hidden = false; // before a map is drawn: a hidden map has no size
  watchChoice(part("choice"), survey, (value) => {
    Object.assign(state, { value, draws: [] });
    part("seen").hidden = value === null;
    part("send").hidden = value === null;
    if (value === null) return;
    fillOthers(survey, survey.symbol(value));
    draw(1);
  });
  part("again").addEventListener("click", () => draw(1));
  part("many").addEventListener("click", () => draw(MANY_DRAWS));
  part("other").addEventListener("change", () => show());
  part("post").addEventListener("click", () => post(client, state.value));

  function draw(times) {
    const fresh = Array.from({ length: times }, () => survey.privatize(state.value));
    state.draws = times === 1 ? fresh : [...state.draws, ...fresh];
    show();
  }

  function show() {
    const symbol = survey.symbol(state.value);
    const other = Number(part("other").value);
    const own = { name: quote(survey, symbol), row: survey.probabilities(symbol) };
    const theirs = { name: quote(survey, other), row: survey.probabilities(other) };
    const report = state.draws.at(-1);
    part("answer").textContent = own.name;
    part("report").textContent = report.toLocaleString("en");
    part("outputs").textContent = survey.outputs.toLocaleString("en");
    part("conclusion").textContent =
      survey.size > 1
        ? conclusion(report, own.row, theirs.row, own.name, theirs.name)
        : "There is only one answer.";
    drawBars(own, theirs, report, state.draws);
  }
}

/** Quote a label, and isolate its writing direction from that of the sentence. */
const quote = (survey, symbol) => `“\u2068${survey.label(symbol)}\u2069”`;

/** Offer answers to compare with: all others if they are few, else some near ones and a far one. */
function fillOthers(survey, symbol) {
  const select = part("other");
  const previous = select.value;
  const last = survey.size - 1;
  const below = symbol + (page.dataset.columns | 0);
  let candidates = [symbol - 1, symbol + 1, below, last - symbol, 0, last];
  if (survey.size <= MAX_COMPARED) candidates = Array.from({ length: survey.size }, (_, x) => x);
  const others = [...new Set(candidates)].filter((x) => x !== symbol && x >= 0 && x <= last);
  select.replaceChildren(...others.map((x) => new Option(String(survey.label(x)), x)));
  if (others.map(String).includes(previous)) select.value = previous;
  part("compare").hidden = others.length < 2;
}

// --- the picture ---------------------------------------------------------------------------------

function drawBars(own, theirs, report, draws) {
  const few = own.row.length <= MAX_BARS;
  const drawShares = draws.length >= MANY_DRAWS ? shares(draws, own.row.length) : null;
  const groups = few
    ? own.row.map((_, y) => ({ name: `report ${y}`, reports: [y] }))
    : sides(own.row, theirs.row, own.name, theirs.name);
  const rows = [own.row, theirs.row, drawShares];
  const sums = groups.map(({ reports }) => rows.map((row) => row && sum(reports, row)));
  const largest = Math.max(...sums.flat());
  const elements = groups.map(({ name, reports }, i) => {
    const element = document.createElement("tr");
    if (reports.includes(report)) element.className = "drawn";
    element.append(rowHead(name), barCell(sums[i], largest));
    return element;
  });
  part("bars").tBodies[0].replaceChildren(...elements);
  part("own-name").textContent = own.name;
  part("other-name").textContent = theirs.name;
  part("drawn-key").hidden = drawShares === null;
  part("drawn-count").textContent = draws.length.toLocaleString("en");
  part("together").hidden = few;
}

const sum = (reports, row) => reports.reduce((total, y) => total + row[y], 0);

function barCell(sums, largest) {
  const cell = document.createElement("td");
  for (const [i, kind] of ["own", "other", "draws"].entries()) {
    const share = sums[i];
    if (share === null) continue;
    const bar = document.createElement("span");
    bar.className = `bar ${kind}`;
    const meter = document.createElement("meter");
    meter.setAttribute("aria-hidden", "true"); // the number next to it says the same
    Object.assign(meter, { min: 0, max: largest, value: share });
    bar.append(meter, ` ${percent(share)}`);
    cell.append(bar);
  }
  return cell;
}

function rowHead(text) {
  const head = document.createElement("th");
  head.textContent = text;
  head.scope = "row";
  return head;
}

// --- sending -------------------------------------------------------------------------------------

async function post(client, value) {
  part("post").disabled = true;
  try {
    const { body } = await client.prepare(value);
    part("body").textContent = body;
    part("sent").hidden = false;
    const { delivered } = await client.answer(value);
    part("receipt").textContent = delivered
      ? "Counted. This is all that left your device, and it is counted once: sending again sends " +
        "the same report."
      : "The aggregator is out of reach. The report waits in this browser and is sent when it is " +
        "back.";
  } catch (problem) {
    part("receipt").textContent = problemSentence(problem);
  } finally {
    part("post").disabled = false;
  }
  await showSpent(client);
}

/** Show what is spent, if the ledger can be read; the receipt stays in any case. */
async function showSpent(client) {
  try {
    const spent = await client.spent();
    part("spent").textContent =
      `Surveys of this site have spent ε = ${spent} of ${DEFAULT_BUDGET} in this browser.`;
    part("spent").hidden = false;
  } catch {
    part("spent").hidden = true;
  }
}
