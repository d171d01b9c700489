"use strict";
/* Return a function that draws figures into the elements with their ids, in the page's colours. The
   report page and the dashboard use it. `darkColours` maps each colour to its dark replacement. */
const createFigureDrawer = (darkColours) => {
  const darkScheme = window.matchMedia("(prefers-color-scheme: dark)");
  const config = {
    responsive: true,
    displaylogo: false,
    displayModeBar: "hover",
    scrollZoom: false,
    plotlyServerURL: "",
    typesetMath: false,
    /* Omit the other buttons: some of them link to other sites. */
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
  };
  let figuresJson = "{}";

  /* Replace each colour with its dark version, and leave everything else unchanged. */
  const darken = (key, value) => {
    if (typeof value === "string" && /color$/.test(key)) return darkColours[value] ?? value;
    if (key === "colorscale" && Array.isArray(value)) {
      return value.map(([position, colour]) => [position, darkColours[colour] ?? colour]);
    }
    return value;
  };

  /* Unpack the array of a map into rows, and add a text to each cell. */
  const unpackMap = (figure) => {
    const {packed, rows, columns} = figure.layout.meta ?? {};
    if (!packed) return;
    const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
    const logs = new Float32Array(bytes.buffer);
    const width = columns.length;
    const percent = (log) => (Number.isNaN(log) ? 0 : Number((100 * 10 ** log).toPrecision(3)));
    const trace = figure.data[0];
    trace.z = rows.map((_, i) => Array.from(logs.subarray(i * width, (i + 1) * width)));
    const cellText = (log, i, j) => `${rows[i]},${columns[j]}<br>${percent(log)} %`;
    trace.text = trace.z.map((row, i) => row.map((log, j) => cellText(log, i, j)));
  };

  const draw = (isDark, width) => {
    const figures = JSON.parse(figuresJson, isDark ? darken : undefined);
    for (const [id, figure] of Object.entries(figures)) {
      const element = document.getElementById(id);
      unpackMap(figure);
      const availableWidth = width ?? element.clientWidth;
      const {aspect, square, narrow} = figure.layout.meta ?? {};
      if (narrow && availableWidth < 560) {
        for (const axis in narrow) Object.assign(figure.layout[axis], narrow[axis]);
      }
      if (square) figure.layout.height = Math.min(figure.layout.height, availableWidth + 40);
      if (aspect) {
        figure.layout.height = Math.min(Math.max((availableWidth - 66) * aspect, 80), 900) + 80;
      }
      if (width) figure.layout.width = width;
      Plotly.react(element, figure.data, figure.layout, config);
    }
  };

  darkScheme.addEventListener("change", () => draw(darkScheme.matches));
  let lastWidth = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === lastWidth) return;
    lastWidth = window.innerWidth;
    draw(darkScheme.matches);
  });
  window.addEventListener("beforeprint", () => draw(false, 680));
  window.addEventListener("afterprint", () => draw(darkScheme.matches));

  /* Draw these figures from now on. `json` is an object that maps ids to figures. */
  return (json) => {
    figuresJson = json;
    draw(darkScheme.matches);
  };
};
