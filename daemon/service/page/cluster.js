// The cluster of this daemon: its nodes and all cameras of the site, problems first.

import {arrange, h, nameFilter, setText, walk} from "./dom.js";
import {daemonNow, onCluster} from "./status.js";
import {byName, duration, memberWords, rate} from "./words.js";

/** @typedef {import("./status.js").Cluster} Cluster
 *  @typedef {import("./status.js").SiteNode} SiteNode
 *  @typedef {import("./status.js").SiteCamera} SiteCamera
 *  @typedef {string | {words: string, level?: string, share?: number}} Cell
 *  @typedef {{name: string, href: string | null, cells: Cell[]}} Line */

const STATES = ["unplaced", "unreadable", "waiting", "starting", "running"]; // problems first

export class ClusterPage {
  /** @param {HTMLElement} main */
  constructor(main) {
    /** @type {Cluster | null} */
    this.cluster = null;
    this.sentence = h("p", {class: "sentence"});
    this.band = h("section", {class: "band", "aria-label": "This node"}, this.sentence);
    this.nodes = new Table("Nodes", ["Node", "State", "Room taken", "Cameras", "Plan", "Labels", "Version", "Since"]);
    this.cameras = new Table("Cameras", ["Camera", "State", "Node", "Generation", "Why"]);
    this.filter = nameFilter(() => this.show());
    this.empty = h("p", {class: "hint"});
    this.lists = h("div", {}, h("div", {class: "tools"}, h("h2", {}, "Nodes")), this.nodes.element,
      h("div", {class: "row tools"}, h("h2", {}, "Cameras of the site"), this.filter), this.cameras.element, this.empty);
    main.append(h("h1", {class: "offscreen"}, "Cluster"), this.band, this.lists);
    this.close = onCluster((cluster) => {
      this.cluster = cluster;
      this.show();
    });
  }

  show() {
    const cluster = this.cluster;
    this.lists.hidden = !cluster?.node;
    if (!cluster?.node) {
      setText(this.sentence, cluster ? "This daemon is in no cluster." : "");
      return;
    }
    const {nodes, cameras} = cluster, stale = cluster.state !== "in", run = cameras.filter(({state}) => state === "running").length;
    setText(this.sentence, `${memberWords(cluster)} ${stale ? "Below is what it knew last: others may have taken its cameras." : `${run} of ${cameras.length} cameras run.`}`);
    this.band.classList.toggle("bad", stale || run < cameras.length);
    this.lists.classList.toggle("stale", stale);
    const gone = [...new Set(cameras.map(({node}) => node))].filter((name) => name && !nodes.some((node) => node.name === name));
    this.nodes.show([...gone.map((name) => ({name: /** @type {string} */ (name), href: null, cells: [{words: "gone", level: "bad"}, "",
      `${cameras.filter(({node}) => node === name).length} planned`, "", "", "", ""]})), ...nodes.map((node) => nodeLine(cluster, node))]);
    const wanted = this.filter.value.trim().toLowerCase();
    const found = cameras.filter(({name}) => name.toLowerCase().includes(wanted));
    found.sort((a, b) => STATES.indexOf(a.state) - STATES.indexOf(b.state) || byName(a, b));
    this.cameras.show(found.map((camera) => cameraLine(cluster, camera)));
    setText(this.empty, found.length ? "" : cameras.length ? `No camera's name holds “${this.filter.value}”.`
      : "The site has no camera: framed cluster apply -f FILE gives it some.");
  }
}

/**
 * Returns a camera's state in words, and the address of its page, null if unknown.
 * @param {Cluster} cluster
 * @param {SiteCamera} camera
 */
export function standing({node: own, nodes}, {name, node, state, why, wish, on}) {
  const page = `#/camera/${encodeURIComponent(name)}`, http = nodes.find((each) => each.name === node)?.http ?? "";
  const wants = state === "unplaced" && labelWords(on);
  return {
    level: {running: "good", starting: "warn"}[/** @type {string} */ (state)] ?? "bad",
    words: wish && wish !== node ? `${state}, to go to ${wish}` : state,
    why: `${why ?? ""}${wants ? ` (on ${wants})` : ""}`,
    href: node === own ? page : isHttp(http) ? `${http}/${page}` : null,
  };
}

/** @param {string} url  written by another node */
function isHttp(url) {
  return /^https?:\/\//.test(url);
}

/** @param {Object<string, string>} labels */
function labelWords(labels) {
  return Object.entries(labels).map(([name, value]) => `${name}: ${value}`).join(", ");
}

/**
 * @param {Cluster} cluster
 * @param {SiteNode} node
 * @returns {Line}
 */
function nodeLine({node: own, state, plan}, {name, http, readable, used, room, draining, refused, cameras, running, obeys, behind, labels, version, since_ms: since}) {
  const words = [name === own ? `${state}, this one` : "in", draining && "draining", refused.length && `cannot run ${refused.join(", ")}`];
  return {name, href: name === own ? "#/" : isHttp(http) ? http : null, cells: [
    {words: words.filter(Boolean).join(", "), level: draining || refused.length || name === own && state !== "in" ? "warn" : "good"},
    {words: `${rate(used)} of ${rate(room)}`, share: room ? used / room : 0},
    `${cameras} planned, ${running} running`,
    behind ? {words: `behind, ${obeys} of ${plan}`, level: "warn"} : `obeyed, ${obeys}`,
    labelWords(labels), readable ? version : "a newer framed",
    since ? duration(Math.max(0, daemonNow() - since) / 1000) : "–"]};
}

/**
 * @param {Cluster} cluster
 * @param {SiteCamera} camera
 * @returns {Line}
 */
function cameraLine(cluster, camera) {
  const {level, words, why, href} = standing(cluster, camera);
  return {name: camera.name, href, cells: [{words, level}, camera.node ?? "–", String(camera.generation), why]};
}

/** A table that reuses its row elements, so that the focus and a selection stay. */
class Table {
  /**
   * @param {string} label
   * @param {string[]} heads
   */
  constructor(label, heads) {
    this.heads = heads;
    /** @type {Map<string, {row: HTMLElement, link: HTMLElement, cells: HTMLElement[]}>} */
    this.rows = new Map();
    this.body = h("tbody", {onkeydown: walk});
    this.element = h("table", {class: "cameras site"}, h("caption", {class: "offscreen"}, label),
      h("thead", {}, h("tr", {}, ...heads.map((head) => h("th", {scope: "col"}, head)))), this.body);
  }

  /** @param {Line[]} lines  in the order to show */
  show(lines) {
    arrange(this.body, lines.map(({name, href, cells}) => {
      const known = this.rows.get(name) ?? this.add(name);
      if (href !== known.link.getAttribute("href"))
        href === null ? known.link.removeAttribute("href") : known.link.setAttribute("href", href);
      cells.forEach((cell, i) => fill(known.cells[i], cell));
      return known.row;
    }));
  }

  /** @param {string} name */
  add(name) {
    const link = h("a", {}, name), cells = this.heads.slice(1).map((head) => h("td", {"data-head": head}, h("span", {})));
    const known = {row: h("tr", {}, h("th", {scope: "row"}, link), ...cells), link, cells};
    this.rows.set(name, known);
    return known;
  }
}

/**
 * @param {HTMLElement} element
 * @param {Cell} cell
 */
function fill(element, cell) {
  /** @type {{words: string, level?: string, share?: number}} */
  const {words, level, share} = typeof cell === "string" ? {words: cell} : cell;
  const text = /** @type {HTMLElement} */ (element.firstChild);
  text.className = level ? `state ${level}` : "";
  setText(text, words);
  if (share === undefined)
    return;
  if (!text.nextSibling)
    element.append(h("div", {class: "bar", "aria-hidden": "true"}, h("i", {})));
  element.classList.toggle("full", share > 0.9);
  /** @type {HTMLElement} */ (element.querySelector("i")).style.width = `${100 * Math.min(1, share)}%`;
}
