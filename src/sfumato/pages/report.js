"use strict";
(() => {
  const source = document.getElementById("figures").textContent;
  const palette = JSON.parse(document.getElementById("dark").textContent);
  const scheme = window.matchMedia("(prefers-color-scheme: dark)");
  const config = {
    responsive: true, displaylogo: false, displayModeBar: "hover", scrollZoom: false, plotlyServerURL: "",
    typesetMath: false,
    modeBarButtons: [["toImage", "zoom2d", "pan2d", "resetScale2d"]],  /* these and no others: some lead outside */
  };

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
  draw(scheme.matches);
  scheme.addEventListener("change", () => draw(scheme.matches));
  let last = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === last) return;
    last = window.innerWidth;
    draw(scheme.matches);
  });
  window.addEventListener("beforeprint", () => draw(false, 680));
  window.addEventListener("afterprint", () => draw(scheme.matches));

  const body = document.querySelector("#rows tbody");
  const rows = Array.from(body.rows);
  const heads = Array.from(document.querySelectorAll("#rows th[scope=col]"));
  const found = document.getElementById("found");
  const value = (row, column) => (column === 0 ? row.cells[0].textContent : Number(row.cells[column].dataset.v));
  const order = new Intl.Collator(undefined, {numeric: true}).compare;

  const sort = (column) => {
    const old = heads[column].getAttribute("aria-sort");
    const first = column === 0 ? "ascending" : "descending";
    const next = old === "none" ? first : old === "ascending" ? "descending" : "ascending";
    heads.forEach((head, i) => head.setAttribute("aria-sort", i === column ? next : "none"));
    const sign = next === "ascending" ? 1 : -1;
    const keyed = rows.map((row) => [value(row, column), row]);
    keyed.sort(([a], [b]) => sign * (column === 0 ? order(a, b) : a - b));
    body.append(...keyed.map(([, row]) => row));
  };
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => sort(column)));

  document.getElementById("search").addEventListener("input", (event) => {
    const wanted = event.target.value.normalize("NFC").toLowerCase().trim();
    let shown = 0;
    for (const row of rows) {
      row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
      shown += !row.hidden;
    }
    found.textContent = `${shown.toLocaleString("en")} of ${rows.length.toLocaleString("en")} rows`;
  });
})();
