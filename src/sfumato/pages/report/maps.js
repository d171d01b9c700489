"use strict";
/* Show the share and the interval of the cell that the reader points at, or walks to with arrow keys. */
const MAP_KEYS = {ArrowUp: [1, 0], ArrowDown: [-1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1]};
const makeMapsReadable = (root) => {
  for (const map of root.querySelectorAll(".map[data-grid]")) {
    const grid = JSON.parse(map.dataset.grid);
    const bytes = Uint8Array.from(atob(map.dataset.cells), (character) => character.charCodeAt(0));
    const numbers = new Float32Array(bytes.buffer);
    const count = grid.rows * grid.columns;
    const reading = map.querySelector(".reading");
    const marker = map.querySelector(".marker");
    let shownCell = -1;
    const share = (cell, row) =>
      `${(100 * numbers[row * count + cell]).toFixed(grid.decimals)}%`;
    const degrees = (start, index) => Number((start + index * grid.step).toFixed(6));

    const show = (row, column) => {
      const cell = row * grid.columns + column;
      if (cell === shownCell) return; // a screen reader would repeat it
      shownCell = cell;
      const place = `${degrees(grid.south, row)}, ${degrees(grid.west, column)}`;
      reading.textContent =
        `Cell ${place}: ${share(cell, 0)}, 95% interval ${share(cell, 1)} to ${share(cell, 2)}.`;
    };

    const read = (event) => {
      const picture = event.target.closest("svg");
      if (!picture) return;
      marker.hidden = true;
      const box = picture.getBoundingClientRect();
      const column = Math.floor(((event.clientX - box.left) / box.width) * grid.columns);
      const fromTop = (event.clientY - box.top) / (grid.height * box.width);
      const row = grid.rows - 1 - Math.floor(fromTop * grid.rows);
      if (row < 0 || row >= grid.rows || column < 0 || column >= grid.columns) return;
      show(row, column);
    };

    /* The first key goes to the cell with the largest share. */
    const largestCell = () => numbers.subarray(0, count).reduce((best, n, i, all) => (n > all[best] ? i : best), 0);
    const walk = (event) => {
      const move = MAP_KEYS[event.key];
      if (!move) return;
      event.preventDefault();
      const steps = event.shiftKey ? 10 : 1;
      const from = shownCell < 0 ? largestCell() : shownCell;
      const [up, right] = shownCell < 0 ? [0, 0] : move;
      const row = Math.min(Math.max(Math.floor(from / grid.columns) + steps * up, 0), grid.rows - 1);
      const column = Math.min(Math.max((from % grid.columns) + steps * right, 0), grid.columns - 1);
      show(row, column);
      marker.hidden = false;
      const fromTop = ((grid.rows - row - 0.5) / grid.rows) * grid.height;
      marker.style.left = `${((column + 0.5) / grid.columns) * 100}%`;
      marker.style.top = `${fromTop * map.clientWidth}px`;
    };
    map.addEventListener("keydown", walk);
    map.addEventListener("pointermove", read);
    map.addEventListener("pointerdown", read);
  }
};
