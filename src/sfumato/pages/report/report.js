"use strict";
const drawFigures = figureDrawer(JSON.parse(document.getElementById("dark").textContent));
drawFigures(document.getElementById("figures").textContent);
makeRowsInteractive();
