/** The page: reads what is typed, asks the client what it makes of it, and draws that. */
import { Survey } from "./client/index.js";
import { channelOf, tableRows } from "./channel.js";
import { drawBars, drawRegion } from "./drawings.js";
import { element, offer, percent, short } from "./elements.js";
import { drawGrid, walkGrid } from "./grid.js";
import { readLines, withGroup } from "./lines.js";
import { classicalVariances, clearChannel, peopleFor, variancesOf } from "./people.js";
import { decimalText, epsilonOf, groupName, inWords, LEAST_EPSILON, MOST_EPSILON, OPEN, promiseOf, SENSITIVE } from "./promise.js";
import { promisedEdge, realisedEdge } from "./region.js";
import { resolvedText } from "./resolved.js";
import { tomlOf } from "./toml.js";

const part = (id) => document.getElementById(id);
const TIERS = [OPEN, SENSITIVE, "secret"];
const MANY = 1000;
const MOST_PEOPLE = 1e12; // more than a hundred times those alive
const SLIDER_END = 6;
const [LEAST_ERROR, MOST_ERROR] = [1e-4, 0.5];

/** What was chosen beside the text: the ε of each tier, of all under "", and across blocks. */
const chosen = { epsilons: new Map([["", "1"], [SENSITIVE, "1"], ["secret", "0.5"]]), across: "3" };

/** What is on show: the survey as the client read it, its promise, E and Q. For tests and the curious. */
export let shown = null;
let asked = 0;

// --- what is typed ------------------------------------------------------------------------------------------------

const kind = () => document.querySelector("input[name=kind]:checked").value;
const acrossText = () => (part("shown").checked ? "inf" : chosen.across);

/** Read the page anew. Whatever is wrong is said, and the last good picture stays, faded. */
async function update() {
  const turn = ++asked;
  const { rows, problem } = readLines(part("labels").value);
  drawSettings(rows);
  try {
    if (problem) throw new Error(problem);
    const survey = await surveyOf(promiseOf(rows, { kind: kind(), epsilons: chosen.epsilons, across: acrossText() }));
    if (turn !== asked) return; // something else was typed meanwhile
    shown = survey;
    draw();
    complain("");
  } catch (error) {
    if (turn === asked) complain(error.message);
  }
}

/** The survey of a promise: the client reads it, and refuses it if the table breaks the promise. */
async function surveyOf(promise) {
  const { Q: wanted, how } = channelOf(promise);
  const resolved = resolvedText("playground", promise, tableRows(wanted));
  const survey = await Survey.of(resolved);
  const symbols = [...promise.labels.keys()];
  const E = symbols.map((x) => symbols.map((x2) => (x === x2 ? 0 : numberOf(survey.context.epsilon(x, x2)))));
  return { survey, resolved, promise, how, E, Q: symbols.map((x) => survey.probabilities(x)) };
}

const numberOf = (epsilon) => (epsilon === Infinity ? Infinity : Number(epsilon.p) / Number(epsilon.q));

function complain(problem) {
  part("problem").textContent = problem;
  part("problem").hidden = !problem;
  part("labels").setAttribute("aria-invalid", Boolean(problem));
  part("seen").classList.toggle("stale", Boolean(problem));
}

// --- settings -----------------------------------------------------------------------------------------------------

function drawSettings(rows) {
  const names = [...new Set(rows.map(({ group }) => groupName(kind(), group)))];
  const tiers = names.filter((name) => name !== OPEN).map((name) => [name, `ε of ${name} labels`]);
  const wanted = kind() === "tiers" ? tiers : [["", kind() === "blocks" ? "ε inside blocks" : "ε"]];
  if (kind() === "blocks" && !part("shown").checked) wanted.push(["across", "ε across blocks"]);
  drawSliders(wanted);
  part("shown-row").hidden = kind() !== "blocks";
  part("tiers").hidden = kind() !== "tiers";
  if (kind() === "tiers") drawTiers(rows, [...new Set([...TIERS, ...names])]);
}

/** One slider for each ε, `[key, text]`; they are only built anew when others are needed, so that focus stays. */
function drawSliders(wanted) {
  const host = part("sliders");
  const keys = JSON.stringify(wanted);
  if (host.dataset.keys === keys) return;
  host.dataset.keys = keys;
  host.replaceChildren(...wanted.map(([key, text]) => slider(key, text)));
}

function slider(key, text) {
  const isAcross = key === "across" && kind() === "blocks";
  const value = isAcross ? chosen.across : epsilonOf(chosen.epsilons, key);
  const range = element("input", { type: "range", min: 0.1, max: SLIDER_END, step: 0.1, "aria-label": text });
  const limits = { min: LEAST_EPSILON, max: MOST_EPSILON, step: "any", inputmode: "decimal" };
  const number = element("input", { type: "number", ...limits, "aria-label": `${text}, as a number` });
  [range.value, number.value] = [value, value];
  const choose = (from, to) => () => {
    const epsilon = decimalText(from.value);
    number.setAttribute("aria-invalid", !epsilon);
    if (!epsilon) return;
    to.value = epsilon;
    if (isAcross) chosen.across = epsilon;
    else chosen.epsilons.set(key, epsilon);
    update();
  };
  range.addEventListener("input", choose(range, number));
  number.addEventListener("input", choose(number, range));
  return element("div", { class: "slider" }, element("span", {}, text), range, number);
}

/** A tier for each label; a choice is written into the text, which stays the one truth. */
function drawTiers(rows, names) {
  const list = part("tier-list");
  while (list.children.length > rows.length) list.lastChild.remove();
  while (list.children.length < rows.length) {
    list.append(element("li", {}, element("label", {}, element("span"), element("select"))));
  }
  rows.forEach(({ label, group, line }, x) => {
    const [name, select] = list.children[x].firstChild.children;
    name.textContent = label;
    select.dataset.line = line;
    offer(select, names.map((tier) => [tier, tier]), groupName("tiers", group));
  });
}

// --- what is shown ------------------------------------------------------------------------------------------------

function draw() {
  const { promise, how, E, Q } = shown;
  const { labels } = promise;
  part("in-words").textContent = inWords(promise);
  drawGrid(part("promise"), labels, promiseCells(labels, E));
  drawGrid(part("channel"), labels, channelCells(labels, Q));
  part("how").textContent = how;
  part("verdict").textContent = "✓ checked in your browser: keeps E"; // a survey that is not proved does not load
  const options = labels.map((label, x) => [String(x), short(label)]);
  offer(part("answer"), options);
  offer(part("first"), options, part("first").value || String(labels.length - 1));
  offer(part("second"), options, part("second").value || "0");
  forgetDraws();
  drawErrors();
  drawPeople();
  drawToml();
}

const spoken = (epsilon) => (epsilon === Infinity ? "∞" : `${Number(epsilon.toPrecision(4))}`);

function promiseCells(labels, E) {
  return E.map((row, x) => {
    return row.map((epsilon, x2) => {
      const told = `E[${labels[x]}, ${labels[x2]}] = ${spoken(epsilon)}`;
      const what = epsilon === Infinity ? ", nothing is promised" : `, odds of at most ${Number(Math.exp(epsilon).toPrecision(3))}`;
      if (x === x2) return { depth: 0, text: "0", told: `${told}: the same label`, kind: "own" };
      return { depth: Math.exp(-epsilon / 2), text: spoken(epsilon), told: told + what, kind: epsilon === Infinity ? "free" : "" };
    });
  });
}

function channelCells(labels, Q) {
  return Q.map((row, x) => {
    return row.map((probability, y) => {
      const told = `Q(${labels[y]} | ${labels[x]}) = ${percent(probability)}`;
      return { depth: Math.sqrt(probability), text: percent(probability).replace("%", ""), told, kind: probability ? "" : "never" };
    });
  });
}

function drawErrors() {
  const { promise, E, Q } = shown;
  const [x, x2] = [part("first"), part("second")].map((select) => Number(select.value));
  const isPair = x !== x2;
  part("errors").classList.toggle("stale", !isPair);
  if (!isPair) return void (part("errors-told").textContent = "Choose two different labels.");
  const promised = promisedEdge(E[x][x2], E[x2][x]);
  const told = tellErrors(promise.labels[x], promise.labels[x2], promised[1], E[x][x2] === Infinity && E[x2][x] === Infinity);
  drawRegion(part("errors"), promised, realisedEdge(Q[x], Q[x2]), told);
  part("errors-told").textContent = told;
}

function tellErrors(first, second, [falseAlarm, miss], isOpen) {
  if (isOpen) return `Nothing is promised for this pair: a report may prove that the answer is “${first}” and not “${second}”.`;
  const alarms = `“${first}” for ${percent(falseAlarm)} of those with “${second}” (false alarm)`;
  const misses = `“${second}” for ${percent(miss)} of those with “${first}” (miss)`;
  return `At the corner, the sharpest guess that the promise allows says ${alarms} and ${misses}. No way of guessing has errors below the edge.`;
}

function drawPeople() {
  const { promise, E, Q } = shown;
  const size = promise.labels.length;
  const error = Number(part("error").value) / 100;
  const isError = error >= LEAST_ERROR && error <= MOST_ERROR;
  part("error").setAttribute("aria-invalid", !isError);
  if (!isError) return void (part("needed").textContent = "Enter an error from 0.01 to 50 percent.");
  const needed = (variances) => peopleFor(variances, part("measure").value, error);
  const smallest = Math.min(...E.flatMap((row, x) => row.filter((_, x2) => x2 !== x)));
  const crowds = [
    { name: "without noise", people: needed(variancesOf(clearChannel(size))), kind: "clear" },
    { name: "this promise", people: needed(variancesOf(Q)), kind: "own" },
  ];
  if (smallest < Infinity) {
    crowds.push({ name: `classical ε = ${spoken(smallest)}`, people: needed(classicalVariances(size, smallest)), kind: "classical" });
  }
  const most = Math.max(...crowds.map(({ people }) => people));
  drawBars(part("crowds"), crowds.map(({ people, ...bar }) => ({ ...bar, share: people / most, text: counted(people) })));
  part("needed").textContent = tellPeople(promise.kind, ...crowds.slice(1).map(({ people }) => people));
}

function tellPeople(kind, own, classical) {
  const asked = own === 1 ? "1 person" : `${counted(own)} people`;
  if (classical === undefined) return `${asked}. Nothing is promised, so there is no noise.`;
  const isBest = classical > 0.995 * own;
  if (kind === "uniform" && isBest) return `${asked}. This promise is the classical one, and no mechanism does better.`;
  if (kind === "uniform") return `${asked} with randomised response. This promise is the classical one; its best mechanism needs ${counted(classical)}.`;
  if (!isBest) {
    const better = "here, a good mechanism matters more than the promise. Sfumato itself chooses a better one for your promise, too.";
    return `${asked} with this simple channel. The best mechanism for one ε needs ${counted(classical)}: ${better}`;
  }
  const times = `${Number((classical / own).toPrecision(3))} times as many`;
  return `${asked}. Classical local differential privacy needs ${counted(classical)}, ${times}, even with its best mechanism.`;
}

const counted = (people) => (people > MOST_PEOPLE ? "more than 10¹²" : people.toLocaleString("en-GB"));

function drawToml() {
  const name = part("name").value.trim().normalize("NFC");
  const isName = name && !/[\p{C}\p{Z}]/u.test(name.replaceAll(" ", "")); // printable characters and plain spaces
  part("name").setAttribute("aria-invalid", !isName);
  part("toml").textContent = tomlOf(isName ? name : "my-survey", shown.promise);
  part("copied").textContent = "";
}

// --- reports ------------------------------------------------------------------------------------------------------

function forgetDraws() {
  part("drawn").textContent = "";
  part("draws").hidden = true;
}

function drawOne() {
  const { survey, promise, Q } = shown;
  const x = Number(part("answer").value);
  const y = survey.privatize(promise.labels[x]);
  part("draws").hidden = true;
  part("drawn").textContent = `Report ${y}: “${promise.labels[y]}”. Of those whose answer is “${promise.labels[x]}”, ${percent(Q[x][y])} send it.`;
}

function drawMany() {
  const { survey, promise, Q } = shown;
  const x = Number(part("answer").value);
  const counts = promise.labels.map(() => 0);
  for (let i = 0; i < MANY; i++) counts[survey.privatize(promise.labels[x])]++;
  const rows = promise.labels.map((name, y) => ({ name, share: counts[y] / MANY, text: `${counts[y]}`, mark: Q[x][y] }));
  drawBars(part("draws"), rows);
  part("draws").hidden = false;
  part("drawn").textContent = `1,000 reports for “${promise.labels[x]}”; the marks show what to expect.`;
}

async function copyToml() {
  try {
    await navigator.clipboard.writeText(part("toml").textContent);
    part("copied").textContent = "Copied.";
  } catch {
    getSelection().selectAllChildren(part("toml"));
    part("copied").textContent = "Selected: copy it with your keyboard.";
  }
}

// --- start --------------------------------------------------------------------------------------------------------

part("asleep").remove();
for (const id of ["promise", "channel"]) walkGrid(part(id));
part("labels").addEventListener("input", update);
part("kinds").addEventListener("change", update);
part("shown").addEventListener("change", update);
part("tier-list").addEventListener("change", ({ target }) => {
  part("labels").value = withGroup(part("labels").value, Number(target.dataset.line), target.value);
  update();
});
for (const id of ["first", "second"]) part(id).addEventListener("change", drawErrors);
part("measure").addEventListener("change", drawPeople);
part("error").addEventListener("input", drawPeople);
part("name").addEventListener("input", drawToml);
part("answer").addEventListener("change", forgetDraws);
part("draw").addEventListener("click", drawOne);
part("draw-many").addEventListener("click", drawMany);
part("copy").addEventListener("click", copyToml);
update();
