// Shows what the page is of: a dataset, or a folder with datasets.

import { showDataset } from "./dataset.js";
import { element } from "./dom.js";
import { showFolder } from "./list.js";

const main = document.getElementById("main");

if (document.body.dataset.kind === "dataset") {
  showDataset(main).catch((error) => {
    main.append(element("p", { className: "problem", role: "alert", textContent: `This cannot be shown: ${error.message}` }));
  });
} else {
  showFolder(main, document.getElementById("entries"));
}
