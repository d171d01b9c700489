"use strict";
/* Draws figures into the elements of the same names, in the colours of the page: for the report page and the dashboard. */
const figureDrawer = (palette) => {
  const scheme = window.matchMedia("(prefers-color-scheme: dark)");
  const config = {
    responsive: true, displaylogo: false, displayModeBar: "hover", scrollZoom: false, plotlyServerURL: "",
    typesetMath: false,
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],  /* these and no others: some lead outside */
  };
  let source = "{}";

  /* Colours have a dark partner; nothing else in a figure is touched. */
  const coloured = (key, value) => {
    if (typeof value === "string" && /color$/.test(key)) return palette[value] ?? value;
    if (key === "colorscale" && Array.isArray(value)) return value.map(([at, colour]) => [at, palette[colour] ?? colour]);
    return value;
  };

  /* A map travels as one packed array; rows and texts are made here. */
  const unpack = (figure) => {
    const {packed, rows, columns} = figure.layout.meta ?? {};
    if (!packed) return;
    const bytes = Uint8Array.from(atob(packed), (character) => character.charCodeAt(0));
    const logs = new Float32Array(bytes.buffer);
    const across = columns.length;
    const share = (log) => (Number.isNaN(log) ? "0 %" : `${Number((100 * 10 ** log).toPrecision(3))} %`);
    const trace = figure.data[0];
    trace.z = rows.map((_, i) => Array.from(logs.subarray(i * across, (i + 1) * across)));
    trace.text = trace.z.map((row, i) => row.map((log, j) => `${rows[i]},${columns[j]}<br>${share(log)}`));
  };

  const draw = (dark, width) => {
    const figures = JSON.parse(source, dark ? coloured : undefined);
    for (const [id, figure] of Object.entries(figures)) {
      const place = document.getElementById(id);
      unpack(figure);
      const room = width ?? place.clientWidth;
      const {aspect, square, narrow} = figure.layout.meta ?? {};
      if (narrow && room < 560) for (const axis in narrow) Object.assign(figure.layout[axis], narrow[axis]);
      if (square) figure.layout.height = Math.min(figure.layout.height, room + 40);
      if (aspect) figure.layout.height = Math.min(Math.max((room - 66) * aspect, 80), 900) + 80;
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

  /* From now on, these figures: the JSON of an object from names to figures. */
  return (text) => {
    source = text;
    draw(scheme.matches);
  };
};
