"use strict";
/* Make the table of numbers sortable and searchable. */
const makeRowsInteractive = () => {
  const body = document.querySelector("#rows tbody");
  const rows = Array.from(body.rows);
  const headings = Array.from(document.querySelectorAll("#rows th[scope=col]"));
  const rowCount = document.getElementById("row-count");
  const sortKey = (row, column) => {
    const cell = row.cells[column];
    return column === 0 ? cell.textContent : Number(cell.dataset.v);
  };
  const compare = new Intl.Collator(undefined, {numeric: true}).compare;

  const sort = (column) => {
    const order = headings[column].getAttribute("aria-sort");
    let newOrder = column === 0 ? "ascending" : "descending";
    if (order === "ascending") newOrder = "descending";
    if (order === "descending") newOrder = "ascending";
    headings.forEach((heading, i) => {
      heading.setAttribute("aria-sort", i === column ? newOrder : "none");
    });
    const sign = newOrder === "ascending" ? 1 : -1;
    const keyedRows = rows.map((row) => [sortKey(row, column), row]);
    keyedRows.sort(([a], [b]) => sign * (column === 0 ? compare(a, b) : a - b));
    body.append(...keyedRows.map(([, row]) => row));
  };
  headings.forEach((heading, column) => {
    heading.querySelector("button").addEventListener("click", () => sort(column));
  });

  document.getElementById("search").addEventListener("input", (event) => {
    const search = event.target.value.normalize("NFC").toLowerCase().trim();
    let shownCount = 0;
    for (const row of rows) {
      row.hidden = !row.cells[0].textContent.toLowerCase().includes(search);
      shownCount += !row.hidden;
    }
    const total = rows.length.toLocaleString("en");
    rowCount.textContent = `${shownCount.toLocaleString("en")} of ${total} rows`;
  });
};
