"use strict";
/* Draw figures into the elements of the same ids, in the colours of the page: for the report page
   and the dashboard. `palette` maps each colour to its partner on a dark page. */
const figureDrawer = (palette) => {
  const scheme = window.matchMedia("(prefers-color-scheme: dark)");
  const config = {
    responsive: true,
    displaylogo: false,
    displayModeBar: "hover",
    scrollZoom: false,
    plotlyServerURL: "",
    typesetMath: false,
    /* No other buttons: some of them lead to other sites. */
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],
  };
  let source = "{}";

  /* Replace each colour by its dark partner; leave everything else in a figure alone. */
  const darken = (key, value) => {
    if (typeof value === "string" && /color$/.test(key)) return palette[value] ?? value;
    if (key === "colorscale" && Array.isArray(value)) {
      return value.map(([place, colour]) => [place, palette[colour] ?? colour]);
    }
    return value;
  };

  /* A map arrives as one packed array; make its rows and texts. */
  const unpack = (figure) => {
    const {packed, rows, columns} = figure.layout.meta ?? {};
    if (!packed) return;
    const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
    const logs = new Float32Array(bytes.buffer);
    const width = columns.length;
    const percent = (log) => (Number.isNaN(log) ? 0 : Number((100 * 10 ** log).toPrecision(3)));
    const trace = figure.data[0];
    trace.z = rows.map((_, i) => Array.from(logs.subarray(i * width, (i + 1) * width)));
    const text = (log, i, j) => `${rows[i]},${columns[j]}<br>${percent(log)} %`;
    trace.text = trace.z.map((row, i) => row.map((log, j) => text(log, i, j)));
  };

  const draw = (dark, width) => {
    const figures = JSON.parse(source, dark ? darken : undefined);
    for (const [id, figure] of Object.entries(figures)) {
      const place = document.getElementById(id);
      unpack(figure);
      const available = width ?? place.clientWidth;
      const {aspect, square, narrow} = figure.layout.meta ?? {};
      if (narrow && available < 560) {
        for (const axis in narrow) Object.assign(figure.layout[axis], narrow[axis]);
      }
      if (square) figure.layout.height = Math.min(figure.layout.height, available + 40);
      if (aspect) {
        figure.layout.height = Math.min(Math.max((available - 66) * aspect, 80), 900) + 80;
      }
      if (width) figure.layout.width = width;
      Plotly.react(place, figure.data, figure.layout, config);
    }
  };

  scheme.addEventListener("change", () => draw(scheme.matches));
  let last = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === last) return;
    last = window.innerWidth;
    draw(scheme.matches);
  });
  window.addEventListener("beforeprint", () => draw(false, 680));
  window.addEventListener("afterprint", () => draw(scheme.matches));

  /* Draw these figures from now on: the JSON of an object from ids to figures. */
  return (text) => {
    source = text;
    draw(scheme.matches);
  };
};
