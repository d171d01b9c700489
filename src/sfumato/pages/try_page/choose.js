/** Ways to pick an answer: a list, a box to type in, a map. Each calls back with a value that the survey knows. */

/** Let the person choose; `chosen(value)` is called with every choice, and with `null` where there is none. */
export function watchChoice(form, survey, chosen) {
  const kind = form.dataset.kind;
  if (kind === "list") form.addEventListener("change", () => chosen(readList(form, survey)));
  else if (kind === "box") form.addEventListener("input", () => chosen(readBox(form, survey)));
  else watchMap(form, survey, chosen);
  form.addEventListener("submit", (event) => event.preventDefault());
}

function readList(form, survey) {
  const picked = form.querySelector("input:checked");
  return picked && survey.label(Number(picked.value));
}

/** What was typed, as text or as a number; `null` while it is no label. */
function readBox(form, survey) {
  const text = form.querySelector("input").value.trim();
  const number = /^-?\d+$/.test(text) ? Number(text) : null;
  return [text, number].find((value) => value !== null && value !== "" && isKnown(survey, value)) ?? null;
}

function isKnown(survey, value) {
  try {
    survey.symbol(value);
    return true;
  } catch {
    return false;
  }
}

// --- a grid ------------------------------------------------------------------------------------------------------

function watchMap(form, survey, chosen) {
  const canvas = form.querySelector("canvas");
  const [latitude, longitude] = ["latitude", "longitude"].map((name) => form.querySelector(`[name=${name}]`));
  const edges = { ...JSON.parse(form.dataset.edges), ratio: canvas.height / canvas.width };
  const place = () => {
    const typed = [latitude, longitude].map((input) => (input.value === "" ? NaN : Number(input.value)));
    return typed.every(Number.isFinite) && isKnown(survey, typed) ? typed : null;
  };
  const shown = () => {
    drawMap(canvas, edges, place());
    chosen(place());
  };
  canvas.addEventListener("click", (event) => {
    const box = canvas.getBoundingClientRect();
    const across = (event.clientX - box.left) / box.width;
    const up = 1 - (event.clientY - box.top) / box.height;
    longitude.value = (edges.west + across * (edges.east - edges.west)).toFixed(4);
    latitude.value = (edges.south + up * (edges.north - edges.south)).toFixed(4);
    shown();
  });
  for (const input of [latitude, longitude]) input.addEventListener("input", shown);
  window.addEventListener("resize", () => drawMap(canvas, edges, place()));
  drawMap(canvas, edges, null);
}

/** A graticule, and the chosen cell. */
function drawMap(canvas, { south, north, west, east, step, ratio }, value) {
  const style = getComputedStyle(canvas);
  const scale = window.devicePixelRatio || 1;
  const width = (canvas.width = Math.round(canvas.clientWidth * scale));
  const height = (canvas.height = Math.round(width * ratio)); // the style keeps the ratio of what is set here
  const pen = canvas.getContext("2d");
  const x = (degrees) => ((degrees - west) / (east - west)) * width;
  const y = (degrees) => height - ((degrees - south) / (north - south)) * height;
  pen.strokeStyle = style.getPropertyValue("--line");
  pen.fillStyle = style.getPropertyValue("--faint");
  pen.font = `${11 * scale}px system-ui, sans-serif`;
  const every = roundStep((east - west) / 8);
  for (let d = Math.ceil(west / every) * every; d < east; d += every) line(x(d), 0, x(d), height, `${round(d)}°`, x(d) + 3 * scale, height - 4 * scale);
  for (let d = Math.ceil(south / every) * every; d < north; d += every) line(0, y(d), width, y(d), `${round(d)}°`, 3 * scale, y(d) - 3 * scale);
  if (!value) return;
  const [row, column] = [Math.floor((value[0] - south) / step), Math.floor((value[1] - west) / step)];
  const [left, top] = [x(west + column * step), y(south + (row + 1) * step)];
  const [w, h] = [x(west + (column + 1) * step) - left, y(south + row * step) - top];
  pen.fillStyle = style.getPropertyValue("--warn");
  pen.fillRect(left, top, Math.max(w, 3 * scale), Math.max(h, 3 * scale));
  pen.strokeStyle = style.getPropertyValue("--warn");
  pen.lineWidth = 2 * scale;
  pen.beginPath();
  pen.arc(left + w / 2, top + h / 2, 9 * scale, 0, 2 * Math.PI);
  pen.stroke();

  function line(x1, y1, x2, y2, text, textX, textY) {
    pen.beginPath();
    pen.moveTo(x1, y1);
    pen.lineTo(x2, y2);
    pen.stroke();
    pen.fillText(text, textX, textY);
  }
}

const round = (degrees) => Number(degrees.toFixed(6));

/** A round number near the one given: 1, 2 or 5 times a power of ten. */
function roundStep(about) {
  const power = 10 ** Math.floor(Math.log10(about));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= about);
}
