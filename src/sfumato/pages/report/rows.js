"use strict";
/* Make the table of all numbers sortable and searchable. */
const makeRowsInteractive = () => {
  const body = document.querySelector("#rows tbody");
  const rows = Array.from(body.rows);
  const heads = Array.from(document.querySelectorAll("#rows th[scope=col]"));
  const rowCount = document.getElementById("row-count");
  const value = (row, column) => {
    const cell = row.cells[column];
    return column === 0 ? cell.textContent : Number(cell.dataset.v);
  };
  const compare = new Intl.Collator(undefined, {numeric: true}).compare;

  const sort = (column) => {
    const order = heads[column].getAttribute("aria-sort");
    let next = column === 0 ? "ascending" : "descending";
    if (order === "ascending") next = "descending";
    if (order === "descending") next = "ascending";
    heads.forEach((head, i) => head.setAttribute("aria-sort", i === column ? next : "none"));
    const sign = next === "ascending" ? 1 : -1;
    const keyed = rows.map((row) => [value(row, column), row]);
    keyed.sort(([a], [b]) => sign * (column === 0 ? compare(a, b) : a - b));
    body.append(...keyed.map(([, row]) => row));
  };
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => sort(column));
  });

  document.getElementById("search").addEventListener("input", (event) => {
    const search = event.target.value.normalize("NFC").toLowerCase().trim();
    let shown = 0;
    for (const row of rows) {
      row.hidden = !row.cells[0].textContent.toLowerCase().includes(search);
      shown += !row.hidden;
    }
    const total = rows.length.toLocaleString("en");
    rowCount.textContent = `${shown.toLocaleString("en")} of ${total} rows`;
  });
};
