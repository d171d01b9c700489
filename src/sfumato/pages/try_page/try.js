/**
 * The try page: pick an answer, see what would leave the device and what anybody could make of it, then send it.
 *
 * Everything happens here, in the browser. The survey is fetched whole before anything is picked; nothing is sent until
 * the button is pressed, and then one report, by the client that any page would use.
 */
import { Client, DEFAULT_BUDGET, Survey } from "../client/core.js";
import { watchChoice } from "./choose.js";
import { conclusion, percent, problemSentence, shares, sides } from "./explain.js";

const MOST_BARS = 40;
const MANY = 1000;

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
  part("choice").hidden = false; // before a map is drawn: what is hidden has no size
  watchChoice(part("choice"), survey, (value) => {
    Object.assign(state, { value, draws: [] });
    part("seen").hidden = part("send").hidden = value === null;
    if (value === null) return;
    fillOthers(survey, survey.symbol(value));
    draw(1);
  });
  part("again").addEventListener("click", () => draw(1));
  part("many").addEventListener("click", () => draw(MANY));
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
    const [own, theirs] = [symbol, other].map((x) => survey.probabilities(x));
    const report = state.draws.at(-1);
    part("answer").textContent = name(survey, symbol);
    part("report").textContent = report.toLocaleString("en");
    part("outputs").textContent = survey.outputs.toLocaleString("en");
    part("conclusion").textContent = survey.size > 1 ? conclusion(report, own, theirs, name(survey, symbol), name(survey, other)) : "There is only one answer.";
    drawBars(own, theirs, report, state.draws, name(survey, symbol), name(survey, other));
  }
}

/** A label in quotation marks, kept apart from the direction in which the words around it are read. */
const name = (survey, symbol) => `“\u2068${survey.label(symbol)}\u2069”`;

/** Answers to compare with: all others if they are few, else some near ones and a far one. */
function fillOthers(survey, symbol) {
  const select = part("other");
  const kept = select.value;
  const few = survey.size <= 200;
  const near = [symbol - 1, symbol + 1, symbol + (page.dataset.columns | 0), survey.size - 1 - symbol, 0, survey.size - 1];
  const found = few ? Array.from({ length: survey.size }, (_, x) => x) : [...new Set(near)];
  const others = found.filter((x) => x !== symbol && x >= 0 && x < survey.size);
  select.replaceChildren(...others.map((x) => new Option(String(survey.label(x)), x)));
  if (others.map(String).includes(kept)) select.value = kept;
  part("compare").hidden = others.length < 2;
}

// --- the picture -------------------------------------------------------------------------------------------------

function drawBars(own, theirs, report, draws, ownName, otherName) {
  const few = own.length <= MOST_BARS;
  const drawn = draws.length >= MANY ? shares(draws, own.length) : null;
  const groups = few ? own.map((_, y) => ({ name: `report ${y}`, reports: [y] })) : sides(own, theirs, ownName, otherName);
  const sums = groups.map(({ reports }) => [own, theirs, drawn].map((row) => row && sum(reports, row)));
  const top = Math.max(...sums.flat());
  const rows = groups.map(({ name, reports }, i) => {
    const row = document.createElement("tr");
    if (reports.includes(report)) row.className = "drawn";
    row.append(cell("th", name), bars(sums[i], top));
    return row;
  });
  part("bars").tBodies[0].replaceChildren(...rows);
  part("own-name").textContent = ownName;
  part("other-name").textContent = otherName;
  part("drawn-key").hidden = drawn === null;
  part("drawn-count").textContent = draws.length.toLocaleString("en");
  part("together").hidden = few;
}

const sum = (reports, row) => reports.reduce((total, y) => total + row[y], 0);

function bars(sums, top) {
  const held = document.createElement("td");
  for (const [i, kind] of ["own", "other", "draws"].entries()) {
    const share = sums[i];
    if (share === null) continue;
    const bar = document.createElement("span");
    bar.className = `bar ${kind}`;
    const length = document.createElement("meter");
    length.setAttribute("aria-hidden", "true"); // the number next to it says the same
    Object.assign(length, { min: 0, max: top, value: share });
    bar.append(length, ` ${percent(share)}`);
    held.append(bar);
  }
  return held;
}

function cell(tag, text) {
  const made = document.createElement(tag);
  made.textContent = text;
  if (tag === "th") made.scope = "row";
  return made;
}

// --- sending -----------------------------------------------------------------------------------------------------

async function post(client, value) {
  part("post").disabled = true;
  try {
    const { body } = await client.prepare(value);
    part("body").textContent = body;
    part("sent").hidden = false;
    const { delivered } = await client.answer(value);
    const sent = delivered
      ? "Counted. This is all that left your device, and it is counted once: sending again sends the same report."
      : "The aggregator is out of reach. The report waits in this browser and is sent when it is back.";
    part("receipt").textContent = sent;
  } catch (problem) {
    part("receipt").textContent = problemSentence(problem);
  } finally {
    part("post").disabled = false;
  }
  await showSpent(client);
}

/** Say what is spent, if the ledger can be read; whatever happens, the receipt stays. */
async function showSpent(client) {
  try {
    part("spent").textContent = `Surveys of this site have spent ε = ${await client.spent()} of ${DEFAULT_BUDGET} in this browser.`;
    part("spent").hidden = false;
  } catch {
    part("spent").hidden = true;
  }
}
