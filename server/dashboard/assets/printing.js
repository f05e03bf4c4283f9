// Printing: tables are printed as a whole, with the cluster and the time.

import { session } from "./api.js";
import { visibleName } from "./dom.js";
import { ageText } from "./staleness.js";
import { now, whole } from "./format.js";
import { lists } from "./table.js";

const heading = document.getElementById("printed");
const state = () => (ageText() ? `, state ${ageText()}` : "");

function drawHeading() {
  heading.textContent = visibleName(`${document.title} · ${whole(now())}${state()} · ${location.origin}${location.pathname}`);
}

// print reads the rows that are not in view, and prints.
let printing = false;
async function print() {
  if (printing) return;
  printing = true;
  const shown = [...lists].filter((one) => one.element.isConnected);
  try {
    await Promise.all(shown.map((one) => one.drawAll()));
    drawHeading();
    window.print();
  } finally {
    shown.forEach((one) => one.drawPart());
    printing = false;
  }
}

document.getElementById("print").addEventListener("click", print);
addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey || event.key.toLowerCase() !== "p" || !session.current.may_look) return;
  event.preventDefault();
  print();
});
addEventListener("beforeprint", drawHeading);
