/**
 * The dashboard: the surveys, their promises, the reports that arrived and the results.
 *
 * The aggregator renders the sentences, tables and charts, the same as on the report page. This
 * script fetches them, inserts them into the page and keeps them up to date. Results require the
 * token, which stays in this tab.
 */
const POLL_INTERVAL = 5000; // milliseconds
const TOKEN_KEY = "sfumato/token";
const byId = (id) => document.getElementById(id);

const state = {
  survey: null, // the fingerprint of the survey on the page
  surveysJson: "", // the list of surveys on the page
  hasCertificate: false, // whether the certificate was loaded or requested
  version: null, // identifies the data behind the results on the page
  deferred: {}, // new parts that wait until the old ones lose the focus
  token: null,
  generation: 0, // incremented with each survey shown, to drop late responses
};

// --- requests ------------------------------------------------------------------------------------

class RequestFailed extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function fetchJson(path, method = "GET") {
  const headers = state.token ? { Authorization: `Bearer ${state.token}` } : {};
  const response = await fetch(path, { method, headers, cache: "no-store" }).catch(() => null);
  if (response === null) throw new RequestFailed(0, "The aggregator cannot be reached.");
  if (response.ok) return response.json();
  const problem = await response.json().catch(() => ({}));
  throw new RequestFailed(response.status, problem.detail ?? "The aggregator returned an error.");
}

// --- the page ------------------------------------------------------------------------------------

async function showSurveys() {
  const { surveys } = await fetchJson("v1/surveys");
  const json = JSON.stringify(surveys);
  // Do not replace an unchanged list, so that it keeps the focus.
  if (json !== state.surveysJson) byId("surveys").replaceChildren(...surveys.map(createItem));
  state.surveysJson = json;
  byId("none").hidden = surveys.length > 0;
  const fingerprint = location.hash.slice(1);
  const survey = surveys.find((candidate) => candidate.fingerprint === fingerprint) ?? surveys[0];
  if (!survey) byId("loading").hidden = true;
  else if (survey.fingerprint === state.survey) markCurrent(state.survey);
  else await showSurvey(survey);
}

function markCurrent(fingerprint) {
  for (const link of byId("surveys").querySelectorAll("a")) {
    if (link.hash.slice(1) === fingerprint) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function createItem({ fingerprint, title, open }) {
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
  const generation = ++state.generation;
  Object.assign(state, { survey: null, hasCertificate: false, version: null });
  state.deferred = {};
  for (const element of document.querySelectorAll("[data-part]")) element.replaceChildren();
  markCurrent(fingerprint);
  byId("loading").hidden = false;
  const view = await fetchJson(`dashboard/${fingerprint}/promise`);
  if (generation !== state.generation) return;
  state.survey = fingerprint; // set only on success, so that the next poll retries after a failure
  document.title = `${title} – Sfumato aggregator`;
  showView(view);
  byId("loading").hidden = true;
  showCertificate().catch(() => {}); // poll() retries and shows the error
  await showResults();
}

/** Show the certificate. Nothing waits for it, because it takes seconds for many answers. */
async function showCertificate() {
  if (!state.survey || state.hasCertificate) return;
  const generation = state.generation;
  state.hasCertificate = true;
  try {
    const view = await fetchJson(`dashboard/${state.survey}/certificate`);
    if (generation === state.generation) showView(view);
  } catch (problem) {
    if (generation !== state.generation) return;
    state.hasCertificate = false;
    throw problem;
  }
}

/** Show the results, which require the token, if anything has changed. */
async function showResults() {
  if (!state.survey) return;
  byId("token").hidden = state.token !== null;
  byId("forget").hidden = state.token === null;
  byId("options").hidden = state.token === null;
  if (state.token === null) return;
  const generation = state.generation;
  const query = resultsQuery();
  const isStale = () =>
    generation !== state.generation || query !== resultsQuery() || state.token === null;
  try {
    const status = await fetchJson(`v1/surveys/${state.survey}/status`);
    const version = `${status.reports}/${status.state}/${JSON.stringify(status.left_out)}/${query}`;
    if (isStale() || version === state.version) return;
    // First: if everything is left out, there are no results, but days to include again.
    const days = await fetchJson(`dashboard/${state.survey}/days`);
    if (isStale()) return;
    showView(days);
    const view = await fetchJson(`dashboard/${state.survey}/results?${query}`);
    if (isStale()) return;
    showView(view);
    state.version = version;
  } catch (problem) {
    if (isStale()) return;
    if (problem.status !== 401) throw problem;
    forgetToken("This token does not belong to this aggregator.");
  }
}

/** Leave out a day or a sender, or include it again, as the button says. */
document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-omission]");
  if (!button) return;
  button.disabled = true;
  button.blur(); // the part that contains it is replaced
  attempt(async () => {
    try {
      const path = `v1/surveys/${state.survey}/omissions/${button.dataset.omission}`;
      await fetchJson(path, button.dataset.method);
    } finally {
      button.disabled = false;
    }
    state.version = null;
    await showResults();
  });
});

function resultsQuery() {
  const query = { decoder: byId("decoder").value, days: byId("days").value };
  return String(new URLSearchParams(query));
}

/** Insert parts into the page. A part that has the focus is replaced when it loses the focus. */
function showView({ parts }) {
  for (const [name, html] of Object.entries(parts)) {
    if (partElement(name).contains(document.activeElement)) state.deferred[name] = html;
    else replacePart(name, html);
  }
}

const partElement = (name) => document.querySelector(`[data-part="${name}"]`);

function replacePart(name, html) {
  const element = partElement(name);
  const tableState = name === "table" && byId("rows") ? readTableState() : null;
  const wasOpen = element.querySelector("details")?.open ?? false;
  delete state.deferred[name];
  element.innerHTML = html;
  const details = element.querySelector("details");
  if (details) details.open = wasOpen;
  makeMapsReadable(element);
  if (name !== "table" || !html) return;
  makeRowsInteractive();
  if (tableState) restoreTableState(tableState);
}

document.addEventListener("focusout", () => {
  setTimeout(() => {
    for (const [name, html] of Object.entries(state.deferred)) {
      if (!partElement(name).contains(document.activeElement)) replacePart(name, html);
    }
  });
});

// --- the table: keep its search, order and scroll position ---------------------------------------

const columnHeadings = () => Array.from(document.querySelectorAll("#rows th[scope=col]"));

function readTableState() {
  const orders = columnHeadings().map((heading) => heading.getAttribute("aria-sort"));
  return { orders, search: byId("search").value, top: byId("rows").parentElement.scrollTop };
}

function restoreTableState({ orders, search, top }) {
  const column = orders.findIndex((order) => order !== "none");
  const heading = columnHeadings()[column];
  const button = heading.querySelector("button");
  while (heading.getAttribute("aria-sort") !== orders[column]) button.click();
  byId("search").value = search;
  byId("search").dispatchEvent(new Event("input"));
  byId("rows").parentElement.scrollTop = top;
}

// --- problems ------------------------------------------------------------------------------------

/** Show a message. A transient one disappears after the next success. */
function showProblem(message, isTransient = false) {
  const problem = byId("problem");
  // Do not set an unchanged message: a screen reader would repeat it.
  if (problem.textContent !== message) problem.textContent = message;
  problem.hidden = message === "";
  problem.toggleAttribute("data-transient", isTransient);
}

/** Run `work`, and show its error until it succeeds. */
async function attempt(work) {
  try {
    await work();
    if (byId("problem").hasAttribute("data-transient")) showProblem("");
  } catch (problem) {
    showProblem(problem.message[0].toUpperCase() + problem.message.slice(1), true);
  }
}

// --- the token -----------------------------------------------------------------------------------

byId("token").addEventListener("submit", (event) => {
  event.preventDefault();
  state.token = byId("secret").value.trim() || null;
  byId("secret").value = "";
  if (state.token) withStorage((storage) => storage.setItem(TOKEN_KEY, state.token));
  state.version = null;
  showProblem("");
  attempt(showResults);
});

/** Return the token in the URL's fragment, which `sfumato serve` prints, and remove it there. */
function takeTokenFromUrl() {
  const match = location.hash.match(/^#token=([\w-]+)$/);
  if (!match) return null;
  history.replaceState(null, "", location.pathname + location.search);
  withStorage((storage) => storage.setItem(TOKEN_KEY, match[1]));
  return match[1];
}

byId("forget").addEventListener("click", () => forgetToken("The token was forgotten."));

function forgetToken(message) {
  withStorage((storage) => storage.removeItem(TOKEN_KEY));
  Object.assign(state, { token: null, version: null, deferred: {} });
  for (const element of document.querySelectorAll("[data-private]")) element.replaceChildren();
  showProblem(message);
  showResults();
  byId("secret").focus();
}

/** Use the tab's storage. If the browser denies access, the token lasts until the page closes. */
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
  let health = "running, but unable to write";
  if (response === null) health = "not reachable";
  else if (response.ok) health = "running and able to write";
  byId("health").textContent = health;
  byId("health").className = response?.ok ? "well" : "ill";
}

async function poll() {
  const started = performance.now();
  await showHealth();
  await attempt(async () => {
    await showSurveys();
    await Promise.all([showResults(), showCertificate()]);
  });
  // Pause longer after slow responses, so that polling never overloads the aggregator.
  setTimeout(poll, Math.max(POLL_INTERVAL, 4 * (performance.now() - started)));
}

for (const id of ["decoder", "days"]) {
  byId(id).addEventListener("change", () => attempt(showResults));
}
window.addEventListener("hashchange", () => {
  const token = takeTokenFromUrl();
  if (token) Object.assign(state, { token, version: null });
  attempt(token ? showResults : showSurveys);
});
state.token = takeTokenFromUrl() ?? withStorage((storage) => storage.getItem(TOKEN_KEY));
poll();
