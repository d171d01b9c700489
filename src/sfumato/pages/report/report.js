"use strict";
const drawFigures = createFigureDrawer(JSON.parse(document.getElementById("dark").textContent));
drawFigures(document.getElementById("figures").textContent);
makeRowsInteractive();
