"use strict";
/* Makes the table of all numbers sortable and searchable. */
const enlivenRows = () => {
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
};
