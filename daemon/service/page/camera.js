// A camera: its picture beside its tensors, charts of the last ten minutes, events, and clients.

import {cameraPath, explain, getJson, send} from "./api.js";
import {Chart} from "./chart.js";
import {standing} from "./cluster.js";
import {commandsOf, commandsOfCamera} from "./commands.js";
import {copyButton, h, setText} from "./dom.js";
import {listen} from "./events.js";
import {PicturePair} from "./picture.js";
import {CLUSTER, onCamera, refresh} from "./status.js";
import {REASONS, WANTED_LOSSES, bitRate, clockTime, count, duration, health, lossWords, percent, rate} from "./words.js";

/** @typedef {import("./status.js").Camera} Camera
 *  @typedef {import("./status.js").Status} Status
 *  @typedef {import("./history.js").Samples} Samples
 *  @typedef {import("./history.js").CameraHistory} CameraHistory */

const HISTORY_MS = 2000, SCENES_MS = 500, EVENTS = 50, BOX_MS = 1000;
const HUES = ["c1", "c2", "c3", "c4", "c5", "c6", "c7", "c8"];

export class CameraPage {
  /**
   * @param {HTMLElement} main
   * @param {string} name
   */
  constructor(main, name) {
    this.name = name;
    this.chosen = "";
    /** @type {Camera | null} */
    this.camera = null;
    /** @type {CameraHistory | null} */
    this.history = null;
    this.newest = {interval_ms: HISTORY_MS, newest_ms: 0};
    this.known = ""; // the outputs in the lists, as JSON
    this.abort = new AbortController();
    this.pair = new PicturePair(name);
    this.state = h("span", {class: "state"});
    this.notice = h("p", {class: "notice", role: "status", hidden: true});
    this.refusal = ""; // error of the last action
    this.elsewhere = h("span", {});
    this.actions = h("div", {class: "row actions"});
    this.outputs = h("fieldset", {class: "choice"}, h("legend", {class: "offscreen"}, "Output"));
    this.frames = new Chart("Frames", "per second", "reconnects");
    this.latency = new Chart("Latency", "ms, median by stage, and p99");
    this.losses = new Chart("Losses", "frames per second");
    this.events = h("ol", {class: "events", "aria-live": "polite", "aria-relevant": "additions"});
    this.eventsNotice = h("p", {class: "hint"}, "Nothing has happened yet.");
    this.facts = h("dl", {class: "facts"});
    this.clients = h("div", {});
    this.commands = h("div", {});
    main.append(
      h("div", {class: "row title"}, h("h1", {}, name), this.state, this.actions), this.notice,
      this.missing = h("p", {hidden: true}, this.elsewhere, h("a", {href: "#/"}, "All cameras")), this.body = h("div", {class: "body"},
      h("div", {class: "row tools"}, this.outputs, this.switches()), this.pair.element,
      h("section", {class: "charts", "aria-label": "The last ten minutes"}, this.frames.element, this.latency.element, this.losses.element),
      h("div", {class: "columns"},
        h("section", {}, h("h2", {}, "Events"), this.eventsNotice, this.events),
        h("section", {}, h("h2", {}, "Stream"), this.facts),
        h("section", {}, h("h2", {}, "Clients"), this.clients)),
      h("section", {}, h("h2", {}, "Read it"), this.commands)));
    this.fillActions();
    this.stopStatus = onCamera(name, (status) => this.update(status));
    this.historyTimer = setInterval(() => this.loadHistory(), HISTORY_MS);
    this.sceneTimer = setInterval(() => this.loadScene(), SCENES_MS);
    this.resized = () => this.chart();
    window.addEventListener("resize", this.resized);
    listen(`camera=${encodeURIComponent(name)}&types=state,alarm,reload,change,detections`, this.abort.signal, (type, event) => this.happened(type, event),
      (problem) => problem && setText(this.eventsNotice, `No events: ${explain(problem)}`));
  }

  close() {
    this.abort.abort();
    this.stopStatus();
    clearInterval(this.historyTimer);
    clearInterval(this.sceneTimer);
    clearTimeout(this.boxTimer);
    window.removeEventListener("resize", this.resized);
    this.pair.close();
  }

  switches() {
    this.motion = h("input", {type: "checkbox", onchange: () => this.loadScene()});
    const outlines = h("input", {type: "checkbox", checked: true, onchange: () => {
      this.pair.showsOutlines = outlines.checked;
      this.pair.overlay();
    }});
    this.motionLabel = h("label", {hidden: true}, this.motion, "Motion");
    return h("div", {class: "row"}, h("label", {}, outlines, "Outlines"), this.motionLabel);
  }

  fillActions() {
    /**
     * @param {string} label
     * @param {() => Promise<any>} act
     * @param {string} [kind]
     */
    const button = (label, act, kind = "quiet") => h("button", {type: "button", class: kind, onclick: async () => {
      try {
        await act();
        this.refusal = "";
        await refresh();
      } catch (problem) {
        this.warn(this.refusal = `${label}: ${explain(problem)}`);
      }
    }}, label);
    this.pause = button("Pause", () => send(cameraPath(this.name, this.isPaused() ? "resume" : "pause")));
    const remove = button("Remove", async () => {
      if (confirm(`Remove the camera ${this.name}? Its outputs end.`)) {
        await send(cameraPath(this.name), undefined, "DELETE");
        location.hash = "#/";
      }
    });
    this.actions.append(this.pause, remove);
  }

  /** @param {string} words  "": no warning */
  warn(words) {
    this.notice.hidden = !words;
    this.notice.className = "notice bad";
    setText(this.notice, words);
  }

  isPaused() {
    return this.camera?.state === "paused";
  }

  /** @param {Status} status */
  update(status) {
    const comes = !this.camera;
    this.camera = status.cameras[0] ?? null;
    this.actions.hidden = !this.camera || !status.http_write;
    if (this.body && this.missing)
      this.missing.hidden = !(this.body.hidden = !this.camera);
    if (!this.camera) {
      this.warn("");
      if (status.cluster)
        this.findElsewhere();
      else
        this.tellMissing("bad", "there is no camera of this name");
      return;
    }
    if (comes)
      this.loadHistory();
    const camera = this.camera, {level, words} = health({...camera, output_error: camera.outputs.some(({last_error: error}) => error && error.age_s < 60)});
    this.state.className = `state ${level}`;
    setText(this.state, words);
    if (this.pause)
      setText(this.pause, this.isPaused() ? "Resume" : "Pause");
    const error = camera.state === "running" ? null : camera.last_error;
    this.warn(this.refusal || (error ? `${error.text} (${duration(error.age_s)} ago)` : ""));
    this.pair.wait(camera.state === "running" ? "" : camera.state);
    if (this.motionLabel)
      this.motionLabel.hidden = !camera.scene;
    this.listOutputs(camera);
    this.tellFacts(camera);
    this.tellClients(camera);
  }

  /**
   * @param {string} level
   * @param {string} words
   * @param {...(Node | string)} where
   */
  tellMissing(level, words, ...where) {
    this.state.className = `state ${level}`;
    setText(this.state, words);
    const text = h("span", {}, ...where);
    if (text.innerHTML !== this.elsewhere.innerHTML) // an unnecessary change would lose the focus
      this.elsewhere.replaceChildren(...text.childNodes);
  }

  /** Shows the state of the camera in the cluster, if this node does not run it. */
  async findElsewhere() {
    try {
      /** @type {import("./status.js").Cluster} */
      const cluster = await getJson(CLUSTER, this.abort.signal);
      const camera = cluster.cameras.find(({name}) => name === this.name);
      if (this.camera)
        return;
      if (!camera)
        return this.tellMissing("bad", "there is no camera of this name");
      const {level, words, why, href} = standing(cluster, camera), {node} = camera;
      this.tellMissing(level, node ? `${words} at ${node}` : words, why && `${why}. `,
        ...(node && node !== cluster.node ? [href ? h("a", {href}, `Its page at ${node}`) : `${node} serves no HTTP`, " · "] : []), h("a", {href: "#/cluster"}, "The cluster"), " · ");
    } catch { /* retried at the next turn */ }
  }

  /** @param {Camera} camera */
  listOutputs(camera) {
    const shown = camera.outputs.filter((output) => output.kernel === "warp" || output.kernel === "yuv");
    const known = JSON.stringify(camera.outputs.map((output) => [output.name, output.kernel, output.sink]));
    if (known === this.known)
      return;
    this.known = known;
    if (!shown.some((output) => output.name === this.chosen))
      this.chosen = shown[0]?.name ?? "";
    for (const label of this.outputs.querySelectorAll("label"))
      label.remove();
    for (const output of shown)
      this.outputs.append(h("label", {}, h("input", {type: "radio", name: "output", checked: output.name === this.chosen, onchange: () => {
        this.chosen = output.name;
        this.pair.choose(output.name);
        this.chart();
      }}), h("span", {}, output.name)));
    this.outputs.hidden = shown.length === 0;
    this.pair.choose(this.chosen);
    const groups = [{name: "", list: commandsOfCamera(camera)},
      ...camera.outputs.map((output) => ({name: output.name, list: commandsOf(camera, output)}))];
    this.commands.replaceChildren(...groups.flatMap(({name, list}) => [h("h3", {}, name || "The camera"),
      ...list.map(({what, text}) => h("div", {class: "command"}, h("p", {}, what, copyButton(() => text, `${what} ${name}`)), h("pre", {tabindex: "0"}, text)))]));
  }

  async loadHistory() {
    if (document.hidden || !this.camera)
      return;
    try {
      const history = await getJson(`api/v1/history?camera=${encodeURIComponent(this.name)}`, this.abort.signal);
      this.newest = history;
      this.history = history.cameras[this.name] ?? null;
      this.chart();
    } catch (problem) {
      if (this.abort.signal.aborted)
        return;
      setText(this.frames.empty, explain(problem));
      this.frames.empty.hidden = false;
    }
  }

  chart() {
    const history = this.history;
    if (!history)
      return;
    const {newest_ms: newestMs, interval_ms: intervalMs} = this.newest;
    /**
     * @param {string} name
     * @param {string} hue
     * @param {(number | null)[]} values
     * @param {"line" | "stack"} kind
     */
    const series = (name, hue, values, kind) => ({name, colour: hue, values: values ?? [], kind});
    const output = history.outputs[this.chosen] ?? Object.values(history.outputs)[0];
    /** @param {Samples} samples */
    const perSecond = (samples) => samples.map((n) => n === null ? null : n * 1000 / intervalMs);
    this.frames.set({newestMs, intervalMs, marks: history.reconnects.map((times) => times ?? 0), series: [
      series("in", "c1", perSecond(history.in), "line"), series("decoded", "c3", perSecond(history.decoded), "line"),
      ...(output ? [series(`out ${this.chosen}`, "c2", perSecond(output.out), "line")] : [])]});
    if (!output)
      return;
    this.latency.set({newestMs, intervalMs, series: [
      ...Object.entries(output.latency).map(([stage, values], i) => series(stage, HUES[i % HUES.length], values, "stack")),
      series("p99", "bad", output.p99, "line")]});
    const lost = Object.entries(output.lost).filter(([, values]) => values.some((value) => value));
    this.losses.set({newestMs, intervalMs, series: (lost.length ? lost : [/** @type {[string, Samples]} */ (["none", output.out.map(() => 0)])]).map(([reason, values], i) =>
      series(reason, WANTED_LOSSES.includes(reason) || reason === "none" ? "off" : HUES[(i + 2) % HUES.length], perSecond(values), "stack"))});
    for (const [i, [reason]] of lost.entries())
      this.losses.legend.children[i]?.setAttribute("title", REASONS[reason] ?? reason);
  }

  async loadScene() {
    const wanted = this.motion?.checked && !document.hidden;
    let boxes = [];
    if (wanted)
      try {
        const {scenes} = await getJson(`api/v1/scenes?camera=${encodeURIComponent(this.name)}`, this.abort.signal);
        boxes = scenes[0]?.boxes ?? [];
      } catch { /* retried at the next turn */ }
    if (wanted || this.pair.motion.length > 0) {
      this.pair.motion = boxes;
      this.pair.overlay();
    }
  }

  /**
   * @param {string} type
   * @param {any} event
   */
  happened(type, event) {
    if (type === "detections") {
      this.takeDetections(event);
      return;
    }
    const {words, level} = phrase(type, event);
    this.eventsNotice.hidden = true;
    this.events.prepend(h("li", {class: level}, h("time", {}, event.t ? clockTime(1000 * event.t) : ""), h("span", {}, words)));
    while (this.events.children.length > EVENTS)
      this.events.lastElementChild?.remove();
  }

  /** @param {any} event */
  takeDetections(event) {
    this.pair.boxes = event.objects.map((/** @type {any} */ object) => ({
      box: object.box, words: `${object.label ?? `class ${object.class}`} ${percent(object.score)}${object.track ? ` #${object.track}` : ""}`}));
    this.pair.overlay();
    clearTimeout(this.boxTimer);
    this.boxTimer = window.setTimeout(() => {
      this.pair.boxes = [];
      this.pair.overlay();
    }, BOX_MS);
  }

  /** @param {Camera} camera */
  tellFacts(camera) {
    const network = camera.network, flagged = Object.entries(camera.flagged).filter(([, n]) => n > 0);
    /** @type {[string, any][]} */
    const rows = [
      ["Address", camera.url], ["Stream", camera.stream], ["Size", camera.picture && `${camera.picture.width}×${camera.picture.height}`],
      ["Codec", camera.codec && `${camera.codec} ${camera.profile ?? ""}`], ["Bit rate", camera.bits_per_second ? bitRate(camera.bits_per_second) : ""],
      ["Keyframes", camera.keyframe_s && `every ${duration(camera.keyframe_s)}`], ["Clock", camera.pictures ? clockWords(camera.clock) : ""], ["Decoder", camera.decoder && `${camera.decoder}${camera.device === null ? "" : ` ${camera.device}`}, decodes ${camera.decodes ?? "all"}`],
      ["Kernels", camera.backend], ["Frames in", `${rate(camera.fps_in)}/s, ${count(camera.pictures)} in all`],
      ["Marked", flagged.map(([name, n]) => `${count(n)} ${name}`).join(", ") || "none"],
      ["Reconnects", count(camera.reconnects)],
      ["Thread", `reads ${percent(camera.thread.read)}, decodes ${percent(camera.thread.decode)}, waits for kernels ${percent(camera.thread.submit)}`],
      ["Transport", network && `${network.transport}, ${count(network.packets)} packets, ${count(network.lost)} lost, ${count(network.reordered)} reordered, ${count(network.late)} late`],
      ["Up in 7 days", camera.availability && `${(100 * camera.availability.share).toFixed(2)} % of the ${duration(camera.availability.known_s)} that are known`],
      ["Alerts", camera.alerts.join(", ")],
    ];
    const told = rows.filter(([, value]) => value !== null && value !== undefined && value !== "");
    if (this.facts.children.length !== 2 * told.length)
      this.facts.replaceChildren(...told.flatMap(([name]) => [h("dt", {}, name), h("dd", {})]));
    told.forEach(([name, value], i) => {
      setText(this.facts.children[2 * i], name);
      setText(this.facts.children[2 * i + 1], String(value));
    });
  }

  /** @param {Camera} camera */
  tellClients(camera) {
    this.clients.replaceChildren(...camera.outputs.map((output) => h("div", {class: "output"},
      h("h3", {}, output.name, " ", h("small", {}, output.sink)),
      h("p", {}, `${output.open ? "open" : "closed"}, ${output.clients} client${output.clients === 1 ? "" : "s"}, ${rate(output.fps_out)}/s out, p50 ${duration(output.latency.p50_s)}, p99 ${duration(output.latency.p99_s)}. Lost: ${lossWords(output.lost)}.`),
      output.consumers.length ? consumersTable(output.consumers) : null,
      output.last_error ? h("p", {class: "bad"}, `${output.last_error.text} (${duration(output.last_error.age_s)} ago)`) : null)));
  }
}


/** @param {Camera["clock"]} clock */
function clockWords(clock) {
  if (!clock)
    return "the camera does not tell the time: pictures count from their arrival";
  const {offset_s: ahead, jitter_s: jitter} = clock;
  return `the camera's, ${duration(Math.abs(ahead))} ${ahead > 0 ? "ahead of" : "behind"} this machine's when pictures come, ± ${duration(jitter)}`;
}

/** @param {import("./status.js").Consumer[]} consumers */
function consumersTable(consumers) {
  return h("div", {class: "scroll"}, h("table", {}, h("thead", {}, h("tr", {}, ...["Client", "Behind", "Holds", "Taken", "Missed"].map((name) => h("th", {scope: "col"}, name)))),
    h("tbody", {}, ...consumers.map((each) => h("tr", {}, h("th", {scope: "row"}, each.name),
      ...[each.behind, each.held, each.taken, each.missed].map((value) => h("td", {}, count(value))))))));
}

/**
 * @param {string} type  of an event
 * @param {any} event
 */
function phrase(type, event) {
  if (type === "alarm")
    return {words: `alarm ${event.alarm} ${event.raised ? "is raised" : "is over"}`, level: event.raised ? "bad" : "good"};
  if (type === "reload")
    return {words: event.ok ? "reloaded" : `not reloaded: ${event.text}`, level: event.ok ? "good" : "bad"};
  if (type === "change")
    return {words: `${event.change} by HTTP or framed(1)`, level: "off"};
  if (type === "lost")
    return {words: `${event.lost ?? "some"} events are missing here`, level: "warn"};
  const level = {running: "good", retrying: "bad", failed: "bad"}[/** @type {string} */ (event.state)] ?? "off";
  const after = event.outage_s ? ` after ${duration(event.outage_s)}` : "";
  return {words: `${event.state ?? type}${after}${event.why ? `: ${event.why}` : ""}`, level};
}
