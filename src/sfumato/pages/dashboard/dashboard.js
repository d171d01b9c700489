/**
 * The dashboard: which surveys there are, what each promises, what came in and what was learned.
 *
 * Sentences, tables and figures are made by the aggregator, the same as on the report page; this script fetches them,
 * puts them in their places and keeps them fresh. What an analyst may see needs the token, which stays in this tab.
 */
const REST = 5000; // milliseconds between two looks
const TOKEN = "sfumato/token";
const part = (id) => document.getElementById(id);
const draw = figureDrawer(JSON.parse(document.body.dataset.dark));

const state = { survey: null, listed: "", certified: false, shown: null, figures: {}, held: {}, token: null, turn: 0 };

// --- talking to the aggregator -----------------------------------------------------------------------------------

class Refused extends Error {
  constructor(status, words) {
    super(words);
    this.status = status;
  }
}

async function ask(path) {
  const headers = state.token ? { Authorization: `Bearer ${state.token}` } : {};
  const answer = await fetch(path, { headers, cache: "no-store" }).catch(() => null);
  if (answer === null) throw new Refused(0, "The aggregator cannot be reached.");
  if (answer.ok) return answer.json();
  const problem = await answer.json().catch(() => ({}));
  throw new Refused(answer.status, problem.detail ?? "The aggregator answers with an error.");
}

// --- what is shown ------------------------------------------------------------------------------------------------

async function showSurveys() {
  const { surveys } = await ask("v1/surveys");
  const listed = JSON.stringify(surveys);
  if (listed !== state.listed) part("surveys").replaceChildren(...surveys.map(entry)); // else the focus would be lost
  state.listed = listed;
  part("none").hidden = surveys.length > 0;
  const wanted = location.hash.slice(1);
  const found = surveys.find(({ fingerprint }) => fingerprint === wanted) ?? surveys[0];
  if (!found) part("loading").hidden = true;
  else if (found.fingerprint === state.survey) markCurrent(state.survey);
  else await showSurvey(found);
}

function markCurrent(fingerprint) {
  for (const link of part("surveys").querySelectorAll("a")) {
    if (link.hash.slice(1) === fingerprint) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function entry({ fingerprint, title, open }) {
  const item = document.createElement("li");
  const link = document.createElement("a");
  link.href = `#${fingerprint}`;
  link.dir = "auto";
  link.textContent = title;
  const mark = document.createElement("span");
  mark.className = open ? "mark open" : "mark";
  mark.textContent = open ? "open" : "closed";
  item.append(link, mark);
  return item;
}

async function showSurvey({ fingerprint, title }) {
  const turn = ++state.turn;
  Object.assign(state, { survey: null, certified: false, shown: null, figures: {}, held: {} });
  for (const place of document.querySelectorAll("[data-part]")) place.replaceChildren();
  markCurrent(fingerprint);
  part("loading").hidden = false;
  const view = await ask(`dashboard/${fingerprint}/promise`);
  if (turn !== state.turn) return;
  state.survey = fingerprint; // not before: what could not be shown is tried again
  document.title = `${title} – Sfumato aggregator`;
  put(view);
  part("loading").hidden = true;
  showCertificate().catch(() => {}); // look() asks again, and says why not
  await refresh();
}

/** It takes seconds for many answers, and nothing else waits for it. */
async function showCertificate() {
  if (!state.survey || state.certified) return;
  const turn = state.turn;
  state.certified = true;
  try {
    const view = await ask(`dashboard/${state.survey}/certificate`);
    if (turn === state.turn) put(view);
  } catch (problem) {
    if (turn !== state.turn) return;
    state.certified = false;
    throw problem;
  }
}

/** What needs the token, if something came in since it was last shown. */
async function refresh() {
  if (!state.survey) return;
  part("token").hidden = state.token !== null;
  part("leave").hidden = state.token === null;
  part("asked").hidden = state.token === null;
  if (state.token === null) return;
  const [turn, question] = [state.turn, asked()];
  const passed = () => turn !== state.turn || question !== asked() || state.token === null;
  try {
    const status = await ask(`v1/surveys/${state.survey}/status`);
    const version = `${status.reports}/${status.state}/${question}`;
    if (passed() || version === state.shown) return;
    const view = await ask(`dashboard/${state.survey}/results?${question}`);
    if (passed()) return;
    put(view);
    state.shown = version;
  } catch (problem) {
    if (passed()) return;
    if (problem.status !== 401) throw problem;
    forgetToken("This is not the token of this aggregator.");
  }
}

const asked = () => String(new URLSearchParams({ decoder: part("decoder").value, days: part("days").value }));

/** Put parts of the page in their places; a part that somebody is just using follows when they leave it. */
function put({ parts, figures }) {
  for (const [name, html] of Object.entries(parts)) {
    if (placeOf(name).contains(document.activeElement)) state.held[name] = html;
    else fill(name, html);
  }
  for (const figure of Object.values(figures)) keepZoom(figure.layout);
  Object.assign(state.figures, figures);
  const present = Object.entries(state.figures).filter(([id]) => part(id));
  draw(JSON.stringify(Object.fromEntries(present)));
}

/** What was zoomed stays zoomed, unless the scale itself has changed. */
function keepZoom(layout) {
  layout.uirevision = state.survey;
  for (const name of ["xaxis", "yaxis"]) {
    layout[name] = { ...layout[name], uirevision: `${state.survey} ${layout[name]?.range}` };
  }
}

const placeOf = (name) => document.querySelector(`[data-part="${name}"]`);

function fill(name, html) {
  const place = placeOf(name);
  const drawn = new Map(Array.from(place.querySelectorAll(".plot"), (plot) => [plot.id, plot]));
  const before = name === "table" && part("rows") ? rowsShown() : null;
  delete state.held[name];
  place.innerHTML = html;
  for (const plot of place.querySelectorAll(".plot")) if (drawn.has(plot.id)) plot.replaceWith(drawn.get(plot.id));
  if (name !== "table" || !html) return;
  enlivenRows();
  if (before) showRows(before);
}

document.addEventListener("focusout", () => {
  setTimeout(() => {
    for (const [name, html] of Object.entries(state.held)) {
      if (!placeOf(name).contains(document.activeElement)) fill(name, html);
    }
  });
});

// --- the table: what was searched for, sorted by and scrolled to stays so -----------------------------------------

const heads = () => Array.from(document.querySelectorAll("#rows th[scope=col]"));

function rowsShown() {
  const orders = heads().map((head) => head.getAttribute("aria-sort"));
  return { orders, search: part("search").value, top: part("rows").parentElement.scrollTop };
}

function showRows({ orders, search, top }) {
  const column = orders.findIndex((order) => order !== "none");
  const head = heads()[column];
  while (head.getAttribute("aria-sort") !== orders[column]) head.querySelector("button").click();
  part("search").value = search;
  part("search").dispatchEvent(new Event("input"));
  part("rows").parentElement.scrollTop = top;
}

// --- what went wrong ----------------------------------------------------------------------------------------------

function tell(words, passing = false) {
  if (part("problem").textContent !== words) part("problem").textContent = words; // else it would be read out again
  part("problem").hidden = words === "";
  part("problem").toggleAttribute("data-passing", passing);
}

/** Try; what goes wrong is said until it works again. */
async function attempt(work) {
  try {
    await work();
    if (part("problem").hasAttribute("data-passing")) tell("");
  } catch (problem) {
    tell(problem.message[0].toUpperCase() + problem.message.slice(1), true);
  }
}

// --- the token ----------------------------------------------------------------------------------------------------

part("token").addEventListener("submit", (event) => {
  event.preventDefault();
  state.token = part("secret").value.trim() || null;
  part("secret").value = "";
  if (state.token) kept((storage) => storage.setItem(TOKEN, state.token));
  state.shown = null;
  tell("");
  attempt(refresh);
});

part("leave").addEventListener("click", () => forgetToken("The token is forgotten."));

function forgetToken(words) {
  kept((storage) => storage.removeItem(TOKEN));
  Object.assign(state, { token: null, shown: null, held: {} });
  for (const place of document.querySelectorAll("[data-private]")) place.replaceChildren();
  tell(words);
  refresh();
  part("secret").focus();
}

/** Where the browser denies storage, the token lasts as long as the page. */
function kept(work) {
  try {
    return work(sessionStorage);
  } catch {
    return null;
  }
}

// --- over and over ------------------------------------------------------------------------------------------------

async function health() {
  const answer = await fetch("dashboard/ready", { cache: "no-store" }).catch(() => null);
  const words = answer === null ? "out of reach" : answer.ok ? "running, and can write" : "running, but cannot write now";
  part("health").textContent = words;
  part("health").className = answer?.ok ? "well" : "ill";
}

async function look() {
  const started = performance.now();
  await health();
  await attempt(async () => {
    await showSurveys();
    await Promise.all([refresh(), showCertificate()]);
  });
  // What took long is asked for less often, so that a slow answer never becomes a burden.
  setTimeout(look, Math.max(REST, 4 * (performance.now() - started)));
}

for (const id of ["decoder", "days"]) part(id).addEventListener("change", () => attempt(refresh));
window.addEventListener("hashchange", () => attempt(showSurveys));
state.token = kept((storage) => storage.getItem(TOKEN));
look();
