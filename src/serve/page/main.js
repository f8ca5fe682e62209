// Shows what the page is of: a dataset, or a folder with datasets.

import { showDataset } from "./dataset.js";
import { showFolder } from "./list.js";

const main = document.getElementById("main");
const entries = document.getElementById("entries");

function fail(error) {
  const note = document.createElement("p");
  note.className = "problem";
  note.setAttribute("role", "alert");
  note.textContent = `This cannot be shown: ${error.message}`;
  main.append(note);
}

if (document.body.dataset.kind === "dataset") {
  showDataset(main).catch(fail);
} else {
  showFolder(main, entries);
}
