// A button that copies, on the signer's page and in the console.
"use strict";

(() => {
  const COPIED_MS = 2000;
  document.body.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button || button.dataset.words) return;
    button.dataset.words = button.textContent;
    button.textContent = await navigator.clipboard.writeText(button.dataset.copy).then(() => "Copied", () => "Not copied: mark it by hand");
    setTimeout(() => {
      button.textContent = button.dataset.words;
      delete button.dataset.words;
    }, COPIED_MS);
  });
})();
