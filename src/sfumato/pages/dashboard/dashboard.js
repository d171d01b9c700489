/**
 * The dashboard: which surveys there are, what each promises, what came in and what was learned.
 *
 * The aggregator makes the sentences, tables and figures, the same as on the report page. This
 * script fetches them, puts them in their places and keeps them fresh. Results need the token,
 * which stays in this tab.
 */
const POLL_INTERVAL = 5000; // milliseconds
const TOKEN = "sfumato/token";
const part = (id) => document.getElementById(id);
const draw = figureDrawer(JSON.parse(part("dashboard").dataset.dark));

const state = {
  survey: null, // the fingerprint of the survey on the page
  surveyList: "", // the JSON of the list of surveys
  certified: false, // whether the certificate is there or on its way
  version: null, // what the results on the page were made from
  figures: {},
  deferred: {}, // parts that wait until the person leaves the ones on the page
  token: null,
  turn: 0, // counts the surveys shown, to drop answers that come too late
};

// --- requests ------------------------------------------------------------------------------------

class RequestFailed extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function fetchJson(path) {
  const headers = state.token ? { Authorization: `Bearer ${state.token}` } : {};
  const response = await fetch(path, { headers, cache: "no-store" }).catch(() => null);
  if (response === null) throw new RequestFailed(0, "The aggregator cannot be reached.");
  if (response.ok) return response.json();
  const problem = await response.json().catch(() => ({}));
  throw new RequestFailed(response.status, problem.detail ?? "The aggregator returned an error.");
}

// --- the page ------------------------------------------------------------------------------------

async function showSurveys() {
  const { surveys } = await fetchJson("v1/surveys");
  const surveyList = JSON.stringify(surveys);
  if (surveyList !== state.surveyList) part("surveys").replaceChildren(...surveys.map(surveyItem));
  state.surveyList = surveyList; // an unchanged list stays as it is, and keeps the focus
  part("none").hidden = surveys.length > 0;
  const fingerprint = location.hash.slice(1);
  const survey = surveys.find((candidate) => candidate.fingerprint === fingerprint) ?? surveys[0];
  if (!survey) part("loading").hidden = true;
  else if (survey.fingerprint === state.survey) markCurrent(state.survey);
  else await showSurvey(survey);
}

function markCurrent(fingerprint) {
  for (const link of part("surveys").querySelectorAll("a")) {
    if (link.hash.slice(1) === fingerprint) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function surveyItem({ fingerprint, title, open }) {
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
  Object.assign(state, { survey: null, certified: false, version: null });
  Object.assign(state, { figures: {}, deferred: {} });
  for (const place of document.querySelectorAll("[data-part]")) place.replaceChildren();
  markCurrent(fingerprint);
  part("loading").hidden = false;
  const view = await fetchJson(`dashboard/${fingerprint}/promise`);
  if (turn !== state.turn) return;
  state.survey = fingerprint; // only now, so that the next poll retries after a failure
  document.title = `${title} – Sfumato aggregator`;
  showView(view);
  part("loading").hidden = true;
  showCertificate().catch(() => {}); // poll() retries, and shows the reason
  await showResults();
}

/** Show the certificate. It takes seconds for many answers, and nothing else waits for it. */
async function showCertificate() {
  if (!state.survey || state.certified) return;
  const turn = state.turn;
  state.certified = true;
  try {
    const view = await fetchJson(`dashboard/${state.survey}/certificate`);
    if (turn === state.turn) showView(view);
  } catch (problem) {
    if (turn !== state.turn) return;
    state.certified = false;
    throw problem;
  }
}

/** Show the results, which need the token, if reports came in since. */
async function showResults() {
  if (!state.survey) return;
  part("token").hidden = state.token !== null;
  part("leave").hidden = state.token === null;
  part("options").hidden = state.token === null;
  if (state.token === null) return;
  const turn = state.turn;
  const query = resultsQuery();
  const isStale = () => turn !== state.turn || query !== resultsQuery() || state.token === null;
  try {
    const status = await fetchJson(`v1/surveys/${state.survey}/status`);
    const version = `${status.reports}/${status.state}/${query}`;
    if (isStale() || version === state.version) return;
    const view = await fetchJson(`dashboard/${state.survey}/results?${query}`);
    if (isStale()) return;
    showView(view);
    state.version = version;
  } catch (problem) {
    if (isStale()) return;
    if (problem.status !== 401) throw problem;
    forgetToken("This is not the token of this aggregator.");
  }
}

function resultsQuery() {
  const query = { decoder: part("decoder").value, days: part("days").value };
  return String(new URLSearchParams(query));
}

/** Put parts of the page in their places. One that has the focus is replaced when it loses it. */
function showView({ parts, figures }) {
  for (const [name, html] of Object.entries(parts)) {
    if (placeOf(name).contains(document.activeElement)) state.deferred[name] = html;
    else replacePart(name, html);
  }
  for (const figure of Object.values(figures)) keepZoom(figure.layout);
  Object.assign(state.figures, figures);
  const present = Object.entries(state.figures).filter(([id]) => part(id));
  draw(JSON.stringify(Object.fromEntries(present)));
}

/** Keep the zoom, unless the scale itself has changed. */
function keepZoom(layout) {
  layout.uirevision = state.survey;
  for (const name of ["xaxis", "yaxis"]) {
    layout[name] = { ...layout[name], uirevision: `${state.survey} ${layout[name]?.range}` };
  }
}

const placeOf = (name) => document.querySelector(`[data-part="${name}"]`);

function replacePart(name, html) {
  const place = placeOf(name);
  const plots = new Map(Array.from(place.querySelectorAll(".plot"), (plot) => [plot.id, plot]));
  const tableState = name === "table" && part("rows") ? readTableState() : null;
  delete state.deferred[name];
  place.innerHTML = html;
  for (const plot of place.querySelectorAll(".plot")) {
    if (plots.has(plot.id)) plot.replaceWith(plots.get(plot.id));
  }
  if (name !== "table" || !html) return;
  makeRowsInteractive();
  if (tableState) restoreTableState(tableState);
}

document.addEventListener("focusout", () => {
  setTimeout(() => {
    for (const [name, html] of Object.entries(state.deferred)) {
      if (!placeOf(name).contains(document.activeElement)) replacePart(name, html);
    }
  });
});

// --- the table: keep its search, order and scroll position ---------------------------------------

const columnHeads = () => Array.from(document.querySelectorAll("#rows th[scope=col]"));

function readTableState() {
  const orders = columnHeads().map((head) => head.getAttribute("aria-sort"));
  return { orders, search: part("search").value, top: part("rows").parentElement.scrollTop };
}

function restoreTableState({ orders, search, top }) {
  const column = orders.findIndex((order) => order !== "none");
  const head = columnHeads()[column];
  while (head.getAttribute("aria-sort") !== orders[column]) head.querySelector("button").click();
  part("search").value = search;
  part("search").dispatchEvent(new Event("input"));
  part("rows").parentElement.scrollTop = top;
}

// --- problems ------------------------------------------------------------------------------------

/** Show a message; a transient one disappears with the next success. */
function showProblem(message, transient = false) {
  const problem = part("problem");
  // An unchanged message stays as it is; a screen reader would repeat it.
  if (problem.textContent !== message) problem.textContent = message;
  problem.hidden = message === "";
  problem.toggleAttribute("data-transient", transient);
}

/** Do some work; show what goes wrong until it succeeds. */
async function attempt(work) {
  try {
    await work();
    if (part("problem").hasAttribute("data-transient")) showProblem("");
  } catch (problem) {
    showProblem(problem.message[0].toUpperCase() + problem.message.slice(1), true);
  }
}

// --- the token -----------------------------------------------------------------------------------

part("token").addEventListener("submit", (event) => {
  event.preventDefault();
  state.token = part("secret").value.trim() || null;
  part("secret").value = "";
  if (state.token) withStorage((storage) => storage.setItem(TOKEN, state.token));
  state.version = null;
  showProblem("");
  attempt(showResults);
});

part("leave").addEventListener("click", () => forgetToken("The token is forgotten."));

function forgetToken(message) {
  withStorage((storage) => storage.removeItem(TOKEN));
  Object.assign(state, { token: null, version: null, deferred: {} });
  for (const place of document.querySelectorAll("[data-private]")) place.replaceChildren();
  showProblem(message);
  showResults();
  part("secret").focus();
}

/** Use the tab's storage. If the browser denies it, the token lasts as long as the page. */
function withStorage(work) {
  try {
    return work(sessionStorage);
  } catch {
    return null;
  }
}

// --- polling -------------------------------------------------------------------------------------

async function showHealth() {
  const response = await fetch("dashboard/ready", { cache: "no-store" }).catch(() => null);
  let health = "running, but cannot write now";
  if (response === null) health = "out of reach";
  else if (response.ok) health = "running, and can write";
  part("health").textContent = health;
  part("health").className = response?.ok ? "well" : "ill";
}

async function poll() {
  const started = performance.now();
  await showHealth();
  await attempt(async () => {
    await showSurveys();
    await Promise.all([showResults(), showCertificate()]);
  });
  // The slower the answers, the longer the pause, so that polling never overloads the aggregator.
  setTimeout(poll, Math.max(POLL_INTERVAL, 4 * (performance.now() - started)));
}

for (const id of ["decoder", "days"]) {
  part(id).addEventListener("change", () => attempt(showResults));
}
window.addEventListener("hashchange", () => attempt(showSurveys));
state.token = withStorage((storage) => storage.getItem(TOKEN));
poll();
