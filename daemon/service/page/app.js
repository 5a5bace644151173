// The page's frame: opens the page in the address, sets the colours, and shows whether the daemon answers.

import {explain} from "./api.js";
import {CameraPage} from "./camera.js";
import {ClusterPage} from "./cluster.js";
import {ConfigPage} from "./config.js";
import {setText} from "./dom.js";
import {Overview} from "./overview.js";
import {watchStatus} from "./status.js";
import {Wizard} from "./wizard.js";

const main = /** @type {HTMLElement} */ (document.getElementById("main"));
const link = /** @type {HTMLElement} */ (document.getElementById("link"));
const theme = /** @type {HTMLElement} */ (document.getElementById("theme"));
/** @type {{close: () => void} | null} */
let page = null;

/** @param {string} text  of an address, which a user may have typed */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function open() {
  const [, name = "", ...rest] = location.hash.replace(/^#/, "").split("/");
  const camera = decoded(rest.join("/"));
  page?.close();
  main.replaceChildren();
  main.className = name || "overview";
  for (const entry of document.querySelectorAll("nav a"))
    if (entry.getAttribute("data-page") === name)
      entry.setAttribute("aria-current", "page");
    else
      entry.removeAttribute("aria-current");
  document.title = `${{config: "Configuration", new: "New camera", cluster: "Cluster", camera}[name] ?? "Cameras"} – framed`;
  page = name === "camera" ? new CameraPage(main, camera)
    : name === "config" ? new ConfigPage(main)
      : name === "cluster" ? new ClusterPage(main)
        : name === "new" ? new Wizard(main) : new Overview(main);
  window.scrollTo(0, 0);
}

const THEMES = ["auto", "light", "dark"], THEME = "framed-theme";
const darkBox = window.matchMedia("(prefers-color-scheme: dark)");

function paint() {
  const chosen = localStorage.getItem(THEME) ?? "auto";
  document.documentElement.dataset.theme = chosen === "dark" || chosen === "auto" && darkBox.matches ? "dark" : "light";
  setText(theme, {light: "Light", dark: "Dark"}[chosen] ?? "Auto");
  theme.setAttribute("aria-label", `Colours: ${chosen}`);
  window.dispatchEvent(new Event("resize")); // redraws the charts
}

theme.addEventListener("click", () => {
  localStorage.setItem(THEME, THEMES[(THEMES.indexOf(localStorage.getItem(THEME) ?? "auto") + 1) % THEMES.length]);
  paint();
});
darkBox.addEventListener("change", paint);
paint();
window.addEventListener("hashchange", () => {
  open();
  main.focus({preventScroll: true});
});
open();
watchStatus((problem) => {
  link.className = problem ? "bad" : "good";
  setText(link, problem ? explain(problem) : "connected");
});
