/**
 * The dashboard: which surveys there are, what each promises, what came in and what was learned.
 *
 * Sentences, tables and figures are made by the aggregator, the same as on the report page; this script fetches them,
 * puts them in their places and keeps them fresh. What an analyst may see needs the token, which stays in this tab.
 */
const REST = 5000; // milliseconds between two looks
const part = (id) => document.getElementById(id);
const draw = figureDrawer(JSON.parse(document.body.dataset.dark));

const state = { survey: null, shown: null, figures: {}, token: sessionStorage.getItem("sfumato/token"), turn: 0 };

// --- talking to the aggregator -----------------------------------------------------------------------------------

class Refused extends Error {
  constructor(status, words) {
    super(words);
    this.status = status;
  }
}

async function ask(path) {
  const headers = state.token ? { Authorization: `Bearer ${state.token}` } : {};
  const answer = await fetch(path, { headers, cache: "no-store" });
  if (answer.ok) return answer.json();
  const problem = await answer.json().catch(() => ({}));
  throw new Refused(answer.status, problem.detail ?? "The aggregator answers with an error.");
}

// --- what is shown ------------------------------------------------------------------------------------------------

async function showSurveys() {
  const { surveys } = await ask("v1/surveys");
  part("surveys").replaceChildren(...surveys.map(entry));
  part("none").hidden = surveys.length > 0;
  const wanted = location.hash.slice(1);
  const found = surveys.find(({ fingerprint }) => fingerprint === wanted) ?? surveys[0];
  if (found && found.fingerprint !== state.survey) await showSurvey(found.fingerprint);
  for (const link of part("surveys").querySelectorAll("a")) {
    if (link.hash.slice(1) === state.survey) link.setAttribute("aria-current", "page");
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

async function showSurvey(fingerprint) {
  const turn = ++state.turn;
  Object.assign(state, { survey: fingerprint, shown: null, figures: {} });
  for (const place of document.querySelectorAll("[data-part]")) place.replaceChildren();
  part("loading").hidden = false;
  const view = await ask(`dashboard/${fingerprint}/promise`);
  if (turn !== state.turn) return;
  put(view);
  part("loading").hidden = true;
  ask(`dashboard/${fingerprint}/certificate`).then((later) => turn === state.turn && put(later), (problem) => tell(problem.message));
  await refresh();
}

/** What needs the token, if something came in since it was last shown. */
async function refresh() {
  if (!state.survey) return;
  part("token").hidden = state.token !== null;
  part("leave").hidden = state.token === null;
  part("asked").hidden = state.token === null;
  if (state.token === null) return;
  const turn = state.turn;
  const question = new URLSearchParams({ decoder: part("decoder").value, days: part("days").value });
  try {
    const status = await ask(`v1/surveys/${state.survey}/status`);
    const version = `${status.reports}/${status.state}/${question}`;
    if (turn !== state.turn || version === state.shown) return;
    const view = await ask(`dashboard/${state.survey}/results?${question}`);
    if (turn !== state.turn) return;
    put(view);
    state.shown = version;
    tell("");
  } catch (problem) {
    if (problem.status === 401) forgetToken("This is not the token of this aggregator.");
    else tell(problem.message);
  }
}

/** Put parts of the page in their places; what somebody is just using is left alone. */
function put({ parts, figures }) {
  for (const [name, html] of Object.entries(parts)) {
    const place = document.querySelector(`[data-part="${name}"]`);
    if (place.contains(document.activeElement)) continue;
    const drawn = new Map(Array.from(place.querySelectorAll(".plot"), (plot) => [plot.id, plot]));
    place.innerHTML = html;
    for (const plot of place.querySelectorAll(".plot")) if (drawn.has(plot.id)) plot.replaceWith(drawn.get(plot.id));
    if (name === "table" && html) enlivenRows();
  }
  Object.assign(state.figures, figures);
  const present = Object.entries(state.figures).filter(([id]) => part(id));
  draw(JSON.stringify(Object.fromEntries(present)));
}

function tell(words) {
  part("problem").textContent = words;
  part("problem").hidden = words === "";
}

// --- the token ----------------------------------------------------------------------------------------------------

part("token").addEventListener("submit", (event) => {
  event.preventDefault();
  state.token = part("secret").value.trim() || null;
  part("secret").value = "";
  if (state.token) sessionStorage.setItem("sfumato/token", state.token);
  state.shown = null;
  refresh();
});

part("leave").addEventListener("click", () => forgetToken("The token is forgotten."));

function forgetToken(words) {
  sessionStorage.removeItem("sfumato/token");
  Object.assign(state, { token: null, shown: null });
  for (const place of document.querySelectorAll("[data-private]")) place.replaceChildren();
  tell(words);
  refresh();
}

// --- over and over ------------------------------------------------------------------------------------------------

async function health() {
  const answer = await fetch("ready", { cache: "no-store" }).catch(() => null);
  const words = answer === null ? "out of reach" : answer.ok ? "running, and can write" : "running, but cannot write now";
  part("health").textContent = words;
  part("health").className = answer?.ok ? "well" : "ill";
}

async function look() {
  const started = performance.now();
  await health();
  await showSurveys().catch((problem) => tell(problem.message));
  await refresh();
  // What took long is asked for less often, so that a slow answer never becomes a burden.
  setTimeout(look, Math.max(REST, 4 * (performance.now() - started)));
}

for (const id of ["decoder", "days"]) part(id).addEventListener("change", () => refresh());
window.addEventListener("hashchange", () => {
  showSurveys().catch((problem) => tell(problem.message));
});
look();
