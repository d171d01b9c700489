/** Ways to pick an answer: a list, a text box or a map. All yield values of the domain. */

/** Call `onChoice(value)` with each choice, or with `null` while there is none. */
export function watchChoice(form, survey, onChoice) {
  const kind = form.dataset.kind;
  if (kind === "list") form.addEventListener("change", () => onChoice(readList(form, survey)));
  else if (kind === "box") form.addEventListener("input", () => onChoice(readBox(form, survey)));
  else watchMap(form, survey, onChoice);
  form.addEventListener("submit", (event) => event.preventDefault());
}

function readList(form, survey) {
  const input = form.querySelector("input:checked");
  return input && survey.label(Number(input.value));
}

/** Return the typed answer as text or as a number, or `null` while it is not a label. */
function readBox(form, survey) {
  const text = form.querySelector("input").value.trim();
  if (text === "") return null;
  if (isKnown(survey, text)) return text;
  if (/^-?\d+$/.test(text) && isKnown(survey, Number(text))) return Number(text);
  return null;
}

function isKnown(survey, value) {
  try {
    survey.symbol(value);
    return true;
  } catch {
    return false;
  }
}

// --- a grid --------------------------------------------------------------------------------------

function watchMap(form, survey, onChoice) {
  const canvas = form.querySelector("canvas");
  const latitude = form.querySelector("[name=latitude]");
  const longitude = form.querySelector("[name=longitude]");
  const edges = { ...JSON.parse(form.dataset.edges), ratio: canvas.height / canvas.width };
  const readPosition = () => {
    const position = [latitude, longitude].map(readNumber);
    return position.every(Number.isFinite) && isKnown(survey, position) ? position : null;
  };
  const update = () => {
    drawMap(canvas, edges, readPosition());
    onChoice(readPosition());
  };
  canvas.addEventListener("click", (event) => {
    const box = canvas.getBoundingClientRect();
    const fromLeft = (event.clientX - box.left) / box.width;
    const fromBottom = 1 - (event.clientY - box.top) / box.height;
    longitude.value = (edges.west + fromLeft * (edges.east - edges.west)).toFixed(4);
    latitude.value = (edges.south + fromBottom * (edges.north - edges.south)).toFixed(4);
    update();
  });
  for (const input of [latitude, longitude]) input.addEventListener("input", update);
  window.addEventListener("resize", () => drawMap(canvas, edges, readPosition()));
  drawMap(canvas, edges, null);
}

const readNumber = (input) => (input.value === "" ? NaN : Number(input.value));

/** Draw a graticule, and the cell that contains `position` if there is one. */
function drawMap(canvas, edges, position) {
  const { south, north, west, east, step } = edges;
  const style = getComputedStyle(canvas);
  const scale = window.devicePixelRatio || 1;
  const width = Math.round(canvas.clientWidth * scale);
  const height = Math.round(width * edges.ratio);
  canvas.width = width;
  canvas.height = height; // CSS keeps this aspect ratio
  const pen = canvas.getContext("2d");
  const x = (degrees) => ((degrees - west) / (east - west)) * width;
  const y = (degrees) => height - ((degrees - south) / (north - south)) * height;
  drawGraticule();
  if (position) drawCell();

  function drawGraticule() {
    pen.strokeStyle = style.getPropertyValue("--line");
    pen.fillStyle = style.getPropertyValue("--faint");
    pen.font = `${11 * scale}px system-ui, sans-serif`;
    const interval = roundStep((east - west) / 8);
    for (let d = Math.ceil(west / interval) * interval; d < east; d += interval) {
      drawLine(x(d), 0, x(d), height);
      pen.fillText(degreesText(d), x(d) + 3 * scale, height - 4 * scale);
    }
    for (let d = Math.ceil(south / interval) * interval; d < north; d += interval) {
      drawLine(0, y(d), width, y(d));
      pen.fillText(degreesText(d), 3 * scale, y(d) - 3 * scale);
    }
  }

  function drawLine(x1, y1, x2, y2) {
    pen.beginPath();
    pen.moveTo(x1, y1);
    pen.lineTo(x2, y2);
    pen.stroke();
  }

  /** Fill the cell and circle it, because a cell may be smaller than a pixel. */
  function drawCell() {
    const row = Math.floor((position[0] - south) / step);
    const column = Math.floor((position[1] - west) / step);
    const left = x(west + column * step);
    const top = y(south + (row + 1) * step);
    const cellWidth = x(west + (column + 1) * step) - left;
    const cellHeight = y(south + row * step) - top;
    pen.fillStyle = style.getPropertyValue("--warn");
    pen.strokeStyle = style.getPropertyValue("--warn");
    pen.lineWidth = 2 * scale;
    pen.fillRect(left, top, Math.max(cellWidth, 3 * scale), Math.max(cellHeight, 3 * scale));
    pen.beginPath();
    pen.arc(left + cellWidth / 2, top + cellHeight / 2, 9 * scale, 0, 2 * Math.PI);
    pen.stroke();
  }
}

/** Format degrees with a real minus sign. */
const degreesText = (degrees) => `${Number(degrees.toFixed(6))}°`.replace("-", "−");

/** Round a step up to 1, 2 or 5 times a power of ten. */
function roundStep(step) {
  const power = 10 ** Math.floor(Math.log10(step));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= step);
}
