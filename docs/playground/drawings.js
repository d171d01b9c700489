/** The error region as a picture, and bars. */
import { element, shape, short } from "./elements.js";

const [SIDE, LEFT, TOP] = [260, 44, 10];

/** Points are [false alarm, miss]; the picture has the miss rate to the right and the false alarm rate upwards. */
const at = ([falseAlarm, miss]) => [LEFT + SIDE * miss, TOP + SIDE * (1 - falseAlarm)];
const path = (points) => points.map((point) => at(point).map((number) => number.toFixed(2)).join(",")).join(" ");

/** Draw the two edges into an SVG; `told` is what the picture says, for those who do not see it. */
export function drawRegion(svg, promised, realised, told) {
  const corner = promised[1];
  const [right, up] = at(corner);
  svg.setAttribute("viewBox", `0 0 ${LEFT + SIDE + 14} ${TOP + SIDE + 46}`);
  svg.setAttribute("aria-label", told);
  svg.replaceChildren(
    shape("polygon", { points: path(promised), class: "allowed" }),
    shape("polyline", { points: path([[1, 0], [0, 1]]), class: "blind" }),
    shape("polyline", { points: `${LEFT},${up} ${right},${up} ${right},${TOP + SIDE}`, class: "guide" }),
    shape("polyline", { points: path(promised), class: "edge" }),
    shape("polyline", { points: path(realised), class: "reached" }),
    shape("polyline", { points: `${LEFT},${TOP} ${LEFT},${TOP + SIDE} ${LEFT + SIDE},${TOP + SIDE}`, class: "axes" }),
    shape("circle", { cx: right, cy: up, r: 4, class: "corner" }),
    ...ticks("miss rate: says the second", "false alarm rate: says the first"),
  );
}

function ticks(below, beside) {
  const bottom = TOP + SIDE;
  const middle = TOP + SIDE / 2;
  return [
    shape("text", { x: LEFT, y: bottom + 17, "text-anchor": "middle" }, "0"),
    shape("text", { x: LEFT + SIDE, y: bottom + 17, "text-anchor": "middle" }, "1"),
    shape("text", { x: LEFT - 8, y: bottom + 4, "text-anchor": "end" }, "0"),
    shape("text", { x: LEFT - 8, y: TOP + 5, "text-anchor": "end" }, "1"),
    shape("text", { x: LEFT + SIDE / 2, y: bottom + 37, "text-anchor": "middle" }, below),
    shape("text", { x: 14, y: middle, "text-anchor": "middle", transform: `rotate(-90 14 ${middle})` }, beside),
  ];
}

/** Rows `{ name, share, text, mark }`: a bar of this share of the width, and a mark where it was expected. */
export function drawBars(host, rows) {
  host.replaceChildren(
    ...rows.map(({ name, share, text, mark, kind = "" }) => {
      const track = element("span", { class: "track" });
      track.style.setProperty("--share", percentage(share));
      if (mark !== undefined) {
        track.classList.add("marked");
        track.style.setProperty("--mark", percentage(mark));
      }
      const what = element("span", { class: "what", title: name }, short(name, 18));
      return element("li", { class: kind }, what, track, element("span", { class: "number" }, text));
    }),
  );
}

const percentage = (share) => `${(100 * share).toFixed(2)}%`;
