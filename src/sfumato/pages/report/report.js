"use strict";
figureDrawer(JSON.parse(document.getElementById("dark").textContent))(document.getElementById("figures").textContent);
enlivenRows();
