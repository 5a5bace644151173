// All cameras at once: a band of figures, and below it a wall of pictures or a table, problems first.

import {getJson} from "./api.js";
import {sparkline} from "./chart.js";
import {arrange, h, nameFilter, setText, walk} from "./dom.js";
import {Losses} from "./history.js";
import {daemonNow, onSummary} from "./status.js";
import {View} from "./view.js";
import {WANTED_LOSSES, bytes, count, duration, health, limit, memberWords, percent, problemsFirst, rate} from "./words.js";

/** @typedef {import("./status.js").Brief} Brief
 *  @typedef {import("./status.js").Summary} Summary */

const LOOK = "framed-look";
const HISTORY_MS = 10000, FIVE_MINUTES = 150, BARS = 30, FPS = 5, PICTURES_MAX = 64; // per stream
const WIDTHS = [160, 240, 320, 480, 640];

export class Overview {
  /** @param {HTMLElement} main */
  constructor(main) {
    /** @type {Map<string, Tile>} */
    this.tiles = new Map();
    this.losses = new Losses(FIVE_MINUTES);
    this.look = localStorage.getItem(LOOK) === "table" ? "table" : "wall";
    this.band = new Band();
    this.filter = nameFilter(() => this.arrange());
    this.notice = h("p", {class: "notice", role: "status", hidden: true});
    this.wall = h("ul", {class: "wall", "aria-label": "Cameras", onkeydown: walk});
    this.rows = h("tbody", {onkeydown: walk});
    this.table = h("div", {class: "scroll"}, h("table", {class: "cameras"}, h("thead", {}, h("tr", {},
      ...["Camera", "State", "Frames/s in", "out", "p99", "Losses of 5 min", "Damaged", "Stream"].map((name) => h("th", {scope: "col"}, name)))), this.rows));
    this.empty = h("p", {class: "hint", hidden: true});
    main.append(h("h1", {class: "offscreen"}, "Cameras"), this.band.element,
      h("div", {class: "row tools"}, this.filter, this.looks()), this.notice, this.wall, this.table, this.empty);
    this.view = new View(FPS, (problem) => this.tellView(problem));
    this.seen = new IntersectionObserver((entries) => this.observe(entries), {rootMargin: "120px"});
    this.stopStatus = onSummary((status) => this.update(status));
    this.clock = setInterval(() => this.tick(), 250);
    this.loadHistory();
    this.historyTimer = setInterval(() => this.loadHistory(), HISTORY_MS);
    this.resized = () => this.ask();
    window.addEventListener("resize", this.resized);
    this.arrange();
  }

  close() {
    this.stopStatus();
    clearInterval(this.clock);
    clearInterval(this.historyTimer);
    window.removeEventListener("resize", this.resized);
    this.seen.disconnect();
    this.view.close();
  }

  looks() {
    const radio = (/** @type {string} */ value, /** @type {string} */ label) => h("label", {}, h("input", {
      type: "radio", name: "look", value, checked: this.look === value, onchange: () => {
        this.look = value;
        localStorage.setItem(LOOK, value);
        this.arrange();
      }}), h("span", {}, label));
    return h("fieldset", {class: "choice"}, h("legend", {class: "offscreen"}, "Show as"), radio("wall", "Wall"), radio("table", "Table"));
  }

  /** @param {unknown} problem */
  tellView(problem) {
    this.notice.hidden = !problem;
    if (problem)
      setText(this.notice, `No pictures: ${problem instanceof Error ? problem.message : problem}.`);
  }

  async loadHistory() {
    if (document.hidden)
      return;
    try {
      this.losses.take(await getJson(this.losses.query()));
    } catch {
      this.losses.clear();
    }
    this.band.lose(this.losses);
    for (const tile of this.tiles.values())
      tile.lose(this.losses);
  }

  /** @param {Summary} status */
  update(status) {
    const names = new Set(status.cameras.map((camera) => camera.name));
    for (const [name, tile] of this.tiles)
      if (!names.has(name)) {
        this.seen.unobserve(tile.item);
        this.tiles.delete(name);
      }
    for (const camera of status.cameras) {
      let tile = this.tiles.get(camera.name);
      if (!tile) {
        this.tiles.set(camera.name, tile = new Tile(camera));
        this.seen.observe(tile.item);
        tile.lose(this.losses);
      }
      tile.update(camera);
    }
    this.band.update(status, [...this.tiles.values()]);
    this.arrange();
  }

  /** Arranges the tiles in order; the focused element keeps the focus. */
  arrange() {
    const wanted = this.filter.value.trim().toLowerCase();
    const order = problemsFirst([...this.tiles.values()].map((tile) => tile.camera));
    const tiles = order.map(({name}) => /** @type {Tile} */ (this.tiles.get(name)));
    this.wall.hidden = this.look !== "wall";
    this.table.hidden = this.look !== "table";
    for (const tile of tiles)
      tile.item.hidden = tile.row.hidden = !tile.name.toLowerCase().includes(wanted);
    arrange(this.wall, tiles.map((tile) => tile.item));
    arrange(this.rows, tiles.map((tile) => tile.row));
    this.empty.hidden = tiles.some((tile) => !tile.item.hidden);
    this.empty.replaceChildren(...(order.length
      ? [`No camera's name holds “${this.filter.value}”.`]
      : ["No camera is configured. ", h("a", {href: "#/new"}, "Find and add one"), "."]));
    this.ask();
  }

  /** @param {IntersectionObserverEntry[]} entries */
  observe(entries) {
    for (const entry of entries)
      for (const tile of this.tiles.values())
        if (tile.item === entry.target)
          tile.visible = entry.isIntersecting;
    this.ask();
  }

  /** Requests pictures of the visible tiles, in a width that other viewers will request too. */
  ask() {
    const first = this.look === "wall" ? [...this.tiles.values()].find((tile) => tile.visible && !tile.item.hidden) : undefined;
    const pixels = (first?.canvas.clientWidth ?? 0) * (window.devicePixelRatio || 1);
    const width = WIDTHS.find((width) => width >= pixels) ?? 640;
    const tiles = first ? [...this.tiles.values()].filter((tile) => tile.visible && !tile.item.hidden) : [];
    tiles.sort((a, b) => a.name < b.name ? -1 : 1);
    this.view.show(tiles.slice(0, PICTURES_MAX).map((tile) => tile.wish(width)));
  }

  tick() {
    for (const tile of this.tiles.values())
      tile.tellAge();
  }
}

class Band {
  constructor() {
    this.sentence = h("p", {class: "sentence"});
    this.clusterWords = h("span", {});
    this.cluster = h("p", {class: "whole", hidden: true}, this.clusterWords, " ", h("a", {href: "#/cluster"}, "All nodes and cameras"));
    this.meters = h("div", {class: "meters"});
    this.lossWords = h("span", {}, "–");
    this.element = h("section", {class: "band", "aria-label": "The whole daemon"}, this.sentence, this.cluster, this.meters,
      h("p", {class: "losses"}, h("b", {}, "Lost in 5 minutes "), this.lossWords));
  }

  /**
   * @param {Summary} status
   * @param {Tile[]} tiles
   */
  update(status, tiles) {
    const all = status.cameras.length, showing = tiles.filter((tile) => tile.isShowing()).length;
    const bound = status.bound;
    const paused = status.cameras.filter((camera) => camera.state === "paused").length;
    const words = [all === 0 ? "No cameras." : `${showing} of ${all} show${all === 1 && showing === 1 ? "s" : ""} pictures${paused ? `, ${paused} paused` : ""}.`];
    if (bound.leg !== "unknown") {
      const told = limit(bound.leg);
      words.push(`${told[0].toUpperCase()}${told.slice(1)}${bound.share ? `, ${percent(bound.share)}` : ""}.`);
    }
    if (typeof bound.cameras_more === "number" && all > 0)
      words.push(bound.cameras_more > 0 ? `Room for ${bound.cameras_more} more.` : "No room for more.");
    setText(this.sentence, words.join(" "));
    this.element.classList.toggle("bad", showing + paused < all);
    this.tellCluster(status.cluster);
    const process = status.process, cpu = bound.cpu ?? process.cpu_cores, cores = process.cpu_cores_allowed;
    const decoders = status.devices.filter((device) => device.nvdec !== null);
    this.meters.replaceChildren(
      meter("Processors", cpu / cores, `${cpu.toFixed(1)} of ${cores.toFixed(0)} cores, framed ${process.cpu_cores.toFixed(2)}`),
      meter("Memory", null, bytes(process.resident_bytes)),
      ...decoders.map((device) => meter(`NVDEC ${device.number}`, device.nvdec, percent(device.nvdec))));
  }

  /** @param {Summary["cluster"]} cluster */
  tellCluster(cluster) {
    this.cluster.hidden = !cluster;
    if (!cluster)
      return;
    const {state, nodes, cameras, elsewhere, troubled} = cluster, stale = state !== "in";
    this.clusterWords.className = stale ? "verdict bad" : troubled ? "verdict warn" : "";
    setText(this.clusterWords, `${memberWords(cluster)}${stale ? "" : ` ${nodes} node${nodes === 1 ? "" : "s"}, ${cameras} camera${cameras === 1 ? "" : "s"}: ${elsewhere} at other nodes, ${troubled} not running.`}`);
  }

  /** @param {Losses} losses */
  lose(losses) {
    const parts = losses.byReason();
    if (!losses.newest) {
      setText(this.lossWords, "not known: no history");
      return;
    }
    this.lossWords.replaceChildren(...(parts.length ? parts.map(([reason, n]) =>
      h("span", {class: WANTED_LOSSES.includes(reason) ? "chip wanted" : "chip", title: reason}, `${count(Math.round(n))} ${reason}`)) : ["nothing"]));
  }
}

/**
 * @param {string} name
 * @param {number | null} share
 * @param {string} text
 */
function meter(name, share, text) {
  const bar = h("i", {});
  if (share !== null)
    bar.style.width = `${100 * Math.min(1, share)}%`;
  return h("div", {class: `meter${share !== null && share > 0.9 ? " full" : ""}`}, h("span", {}, name), h("b", {}, text),
    share === null ? null : h("div", {class: "bar", "aria-hidden": "true"}, bar));
}

/** A camera's tile on the wall, and its row of the table. */
class Tile {
  /** @param {Brief} camera */
  constructor(camera) {
    this.camera = camera;
    this.name = camera.name;
    this.visible = false;
    /** @type {number | null} */
    this.captureMs = null; // of the picture on view
    this.canvas = h("canvas", {width: 320, height: 180, "aria-hidden": "true"});
    this.none = h("span", {class: "none"}, "no picture yet");
    this.age = h("span", {class: "age", hidden: true});
    this.damage = h("span", {class: "damage", hidden: true});
    this.state = h("span", {class: "state"});
    this.figures = h("span", {});
    this.spark = h("canvas", {class: "spark", "aria-hidden": "true"});
    const href = `#/camera/${encodeURIComponent(camera.name)}`;
    this.link = h("a", {href}, h("span", {class: "shot"}, this.canvas, this.none, this.damage, this.age),
      h("span", {class: "caption"}, h("b", {}, camera.name), this.state), h("span", {class: "figures"}, this.figures, this.spark));
    this.item = h("li", {}, this.link);
    this.cells = Array.from({length: 7}, () => h("td", {}));
    this.rowState = h("span", {class: "state"});
    this.cells[0].append(this.rowState);
    this.lossCell = "–";
    this.row = h("tr", {}, h("th", {scope: "row"}, h("a", {href}, camera.name)), ...this.cells);
  }

  isShowing() {
    return this.camera.state === "running";
  }

  /**
   * @param {number} width
   * @returns {import("./view.js").Wish}
   */
  wish(width) {
    return {
      name: this.name, width,
      onFacts: (facts) => facts.error && setText(this.none, facts.error),
      onPicture: (picture, sent) => {
        if (this.canvas.width !== sent.width || this.canvas.height !== sent.height)
          [this.canvas.width, this.canvas.height] = [sent.width, sent.height];
        this.canvas.getContext("2d")?.drawImage(picture, 0, 0);
        this.canvas.dataset.sequence = String(sent.sequence);
        this.captureMs = sent.captureMs;
        this.none.hidden = true;
        this.tellAge();
      },
    };
  }

  /** @returns {number | null} seconds */
  ageSeconds() {
    return this.captureMs === null ? null : Math.max(0, (daemonNow() - this.captureMs) / 1000);
  }

  /** Returns seconds. A picture is shown until the next one arrives, so it may get older by that interval. */
  ageLimit() {
    const {fps_in: fps, max_age_s: limit} = this.camera, between = Math.max(1 / FPS, fps > 0 ? 1 / fps : 0);
    return limit ? limit + between : Math.max(1, 4 * between);
  }

  tellAge() {
    const age = this.ageSeconds(), old = age !== null && age > this.ageLimit() && this.visible;
    this.age.hidden = age === null || !this.visible;
    if (age !== null)
      setText(this.age, `${age < 9.95 ? age.toFixed(1) : Math.round(age)} s`);
    this.age.classList.toggle("bad", old);
    this.link.classList.toggle("stale", old);
  }

  /** @param {Brief} camera */
  update(camera) {
    this.camera = camera;
    const {level, words} = health(camera), {fps_out: out, p99_s: p99, damaged} = camera;
    for (const state of [this.state, this.rowState]) {
      state.className = `state ${level}`;
      setText(state, words);
    }
    this.link.className = level;
    this.link.title = camera.error ?? camera.output_error ?? "";
    setText(this.figures, `${rate(camera.fps_in)} in, ${rate(out)} out/s${p99 === undefined ? "" : `, p99 ${duration(p99)}`}`);
    this.damage.hidden = damaged === 0;
    setText(this.damage, `${count(damaged)} damaged`);
    this.link.setAttribute("aria-label", `${camera.name}: ${words}, ${rate(camera.fps_in)} frames a second in, ${rate(out)} out`);
    if (level !== "good" && this.captureMs === null)
      setText(this.none, camera.error ?? words);
    [rate(camera.fps_in), rate(out), duration(p99), this.lossCell, damaged ? count(damaged) : "–",
      camera.stream ?? camera.error ?? "–"].forEach((text, i) => setText(this.cells[i + 1], text));
    this.tellAge();
  }

  /** @param {Losses} losses */
  lose(losses) {
    const bars = losses.bars(this.name, BARS);
    sparkline(this.spark, bars, "bad");
    this.lossCell = losses.newest ? count(Math.round(bars.reduce((sum, lost) => sum + lost, 0))) : "–";
    setText(this.cells[4], this.lossCell);
  }
}
