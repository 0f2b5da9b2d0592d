"use strict";
const field = document.getElementById("search");
const found = document.getElementById("found");
const datasets = [...document.querySelectorAll("[data-words]")];
document.getElementById("searching").hidden = false;
field.addEventListener("input", () => {
  const wanted = field.value.toLowerCase().split(/\s+/).filter(Boolean);
  let shown = 0;
  for (const dataset of datasets) {
    const fits = wanted.every((word) => dataset.dataset.words.includes(word));
    dataset.hidden = !fits;
    shown += fits;
  }
  found.textContent = wanted.length ? `${shown} of ${datasets.length} datasets` : "";
});
