/**
 * A matrix as a coloured grid: one stop for the keyboard, arrows inside it, and a line that tells the cell one is on.
 * Beside it, folded away, the same numbers as a table.
 */
import { element, short } from "./elements.js";

const WRITTEN = 8; // columns up to which cells hold their text
const [LONGEST_NAME, LONGEST_FINE_NAME] = [18, 13];
const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

/**
 * Draw `cells[x][y] = { depth, text, told, kind }` into a host that holds a `.grid`, an `output` and a `.numbers`.
 * `depth` from 0 to 1 is how deep the colour is; `told` is what the line says.
 */
export function drawGrid(host, labels, cells) {
  const grid = host.querySelector(".grid");
  const place = grid.dataset.place?.split(",").map(Number) ?? [0, 0];
  const [x, y] = place.map((index) => Math.min(index, labels.length - 1));
  grid.style.setProperty("--columns", labels.length);
  grid.classList.toggle("fine", labels.length > WRITTEN);
  const corner = element("div", { role: "columnheader", class: "corner" }, element("span", { class: "hidden" }, "answer"));
  const head = element("div", { role: "row" }, corner, ...labels.map((label) => header("columnheader", label, LONGEST_NAME)));
  const rows = cells.map((row, i) => {
    const own = row.map((cell, j) => cellOf(cell, i, j, i === x && j === y, labels.length <= WRITTEN));
    return element("div", { role: "row" }, header("rowheader", labels[i], labels.length > WRITTEN ? LONGEST_FINE_NAME : LONGEST_NAME), ...own);
  });
  grid.replaceChildren(head, ...rows);
  host.querySelector(".numbers").replaceChildren(tableOf(labels, cells));
  host.querySelector("output").textContent = cells[x][y].told;
}

/** Let a grid be walked by arrows, Home and End, and tell what is pointed at. Once, when the page opens. */
export function walkGrid(host) {
  const grid = host.querySelector(".grid");
  const tell = (cell) => (host.querySelector("output").textContent = cell.getAttribute("aria-label"));
  grid.addEventListener("pointerover", ({ target }) => target.matches(".cell") && tell(target));
  grid.addEventListener("focusin", ({ target }) => {
    if (!target.matches(".cell")) return;
    for (const cell of grid.querySelectorAll('.cell[tabindex="0"]')) cell.tabIndex = -1;
    target.tabIndex = 0;
    grid.dataset.place = target.dataset.place;
    tell(target);
  });
  grid.addEventListener("keydown", (event) => {
    const [x, y] = event.target.dataset.place.split(",").map(Number);
    const k = Number(grid.style.getPropertyValue("--columns"));
    const [down, right] = STEPS[event.key] ?? [0, event.key === "Home" ? -y : event.key === "End" ? k - 1 - y : 0];
    if (!down && !right) return;
    event.preventDefault();
    grid.querySelector(`[data-place="${x + down},${y + right}"]`)?.focus();
  });
}

function header(role, label, longest) {
  return element("div", { role, class: "name", title: label }, element("span", {}, short(label, longest)));
}

function cellOf({ depth, text, told, kind = "" }, x, y, isStop, isWritten) {
  const cell = element("div", {
    role: "gridcell",
    class: `cell ${kind}`,
    tabindex: isStop ? 0 : -1,
    "data-place": `${x},${y}`,
    "aria-label": told,
  });
  cell.style.setProperty("--depth", `${(100 * depth).toFixed(1)}%`);
  if (isWritten || kind === "free") cell.textContent = text;
  return cell;
}

function tableOf(labels, cells) {
  const head = element("tr", {}, element("td"), ...labels.map((label) => element("th", { scope: "col" }, label)));
  const rows = cells.map((row, x) => {
    return element("tr", {}, element("th", { scope: "row" }, labels[x]), ...row.map(({ text }) => element("td", { class: "number" }, text)));
  });
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
}
