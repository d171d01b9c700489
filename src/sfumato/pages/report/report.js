"use strict";
makeRowsInteractive();
makeMapsReadable(document);
/* A folded part would be missing on paper. */
window.addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details")) part.open = true;
});
