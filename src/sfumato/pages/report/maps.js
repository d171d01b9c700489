"use strict";
/* Show the share and the interval of the cell that the reader points at. */
const makeMapsReadable = (root) => {
  for (const map of root.querySelectorAll(".map[data-grid]")) {
    const grid = JSON.parse(map.dataset.grid);
    const bytes = Uint8Array.from(atob(map.dataset.cells), (character) => character.charCodeAt(0));
    const numbers = new Float32Array(bytes.buffer);
    const count = grid.rows * grid.columns;
    const reading = map.querySelector(".reading");
    let shownCell = -1;
    const share = (cell, row) =>
      `${(100 * numbers[row * count + cell]).toFixed(grid.decimals)}%`;
    const degrees = (start, index) => Number((start + index * grid.step).toFixed(6));

    const read = (event) => {
      const picture = event.target.closest("svg");
      if (!picture) return;
      const box = picture.getBoundingClientRect();
      const column = Math.floor(((event.clientX - box.left) / box.width) * grid.columns);
      const fromTop = (event.clientY - box.top) / (grid.height * box.width);
      const row = grid.rows - 1 - Math.floor(fromTop * grid.rows);
      if (row < 0 || row >= grid.rows || column < 0 || column >= grid.columns) return;
      const cell = row * grid.columns + column;
      if (cell === shownCell) return; // a screen reader would repeat it
      shownCell = cell;
      const place = `${degrees(grid.south, row)}, ${degrees(grid.west, column)}`;
      reading.textContent =
        `Cell ${place}: ${share(cell, 0)}, 95% interval ${share(cell, 1)} to ${share(cell, 2)}.`;
    };
    map.addEventListener("pointermove", read);
    map.addEventListener("pointerdown", read);
  }
};
