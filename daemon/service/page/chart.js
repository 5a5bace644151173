// Charts of the last minutes on canvas: lines and stacked areas over the same time.

import {colour, h, prepareCanvas, setText} from "./dom.js";
import {clockTime} from "./words.js";

/**
 * kind "line": drawn over the stacks; "stack": on top of the stacks before it.
 * @typedef {{name: string, colour: string, values: (number | null)[], kind: "line" | "stack"}} Series
 * @typedef {{series: Series[], marks?: number[], newestMs: number, intervalMs: number}} Data
 *     values: oldest first; marks: how often something happened in each interval
 */

const SAMPLES = 300; // minimum length of an axis
const LEFT = 44, RIGHT = 6, TOP = 6, BOTTOM = 18;

/**
 * Returns a round maximum for an axis.
 * @param {number} top
 */
function ceiling(top) {
  if (top <= 0)
    return 1;
  const power = 10 ** Math.floor(Math.log10(top));
  for (const step of [1, 1.5, 2, 3, 4, 5, 6, 8, 10])
    if (top <= step * power)
      return step * power;
  return 10 * power;
}

/** @param {number} value */
function figure(value) {
  if (value === 0)
    return "0";
  return value >= 100 ? Math.round(value).toString() : value >= 10 ? value.toFixed(1).replace(/\.0$/, "")
    : value.toFixed(2).replace(/\.?0+$/, "");
}

export class Chart {
  /**
   * @param {string} title
   * @param {string} unit
   * @param {string} [markName]  of the marks
   */
  constructor(title, unit, markName = "") {
    this.title = title;
    this.unit = unit;
    this.markName = markName;
    /** @type {Data | null} */
    this.data = null;
    /** @type {number | null} */
    this.cursor = null; // index of a value
    this.canvas = h("canvas", {role: "img", tabindex: "0", "aria-label": title});
    this.legend = h("p", {class: "legend"});
    this.when = h("span", {class: "when"});
    this.empty = h("p", {class: "hint over", hidden: true}, "Nothing was recorded yet.");
    this.element = h("figure", {class: "chart"},
      h("figcaption", {}, h("h3", {}, title, " ", h("small", {}, unit)), this.when), this.legend,
      h("div", {class: "plot"}, this.canvas, this.empty));
    this.canvas.addEventListener("pointermove", (event) => this.point(event.offsetX));
    this.canvas.addEventListener("pointerleave", () => this.move(null));
    this.canvas.addEventListener("blur", () => this.move(null));
    this.canvas.addEventListener("keydown", (event) => this.key(event));
  }

  /** @param {Data} data */
  set(data) {
    this.data = data;
    this.draw();
  }

  length() {
    const most = Math.max(0, ...(this.data?.series ?? []).map((series) => series.values.length));
    return most && Math.max(most, SAMPLES);
  }

  /** @param {number} x */
  point(x) {
    const inner = this.canvas.clientWidth - LEFT - RIGHT, n = this.length();
    this.move(n > 1 ? Math.max(0, Math.min(n - 1, Math.round((x - LEFT) / inner * (n - 1)))) : null);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    const steps = {ArrowLeft: -1, ArrowRight: 1, PageUp: -30, PageDown: 30}, n = this.length();
    const step = steps[/** @type {keyof typeof steps} */ (event.key)];
    if (!step || n === 0)
      return;
    event.preventDefault();
    this.move(Math.max(0, Math.min(n - 1, (this.cursor ?? n - 1) + step)));
  }

  /** @param {number | null} cursor */
  move(cursor) {
    if (cursor !== this.cursor) {
      this.cursor = cursor;
      this.draw();
    }
  }

  /**
   * Returns [from, to] of each value of each series; a stack begins at the sum of the stacks below it.
   * @param {Data} data
   * @param {number} n
   */
  layers(data, n) {
    const floor = new Array(n).fill(0);
    return data.series.map((series) => {
      const missing = n - series.values.length;
      return Array.from({length: n}, (_, i) => {
        const value = series.values[i - missing] ?? null;
        if (series.kind === "line")
          return value === null ? null : [0, value];
        const from = floor[i];
        floor[i] += value ?? 0;
        return [from, floor[i]];
      });
    });
  }

  draw() {
    const {context, width, height} = prepareCanvas(this.canvas);
    const data = this.data, n = this.length();
    this.empty.hidden = n > 0;
    if (!data || n === 0 || width < LEFT + RIGHT + 10)
      return;
    const layers = this.layers(data, n);
    const top = ceiling(Math.max(0, ...layers.flat().map((layer) => layer ? layer[1] : 0)));
    /** @param {number} i */
    const x = (i) => LEFT + (width - LEFT - RIGHT) * (n > 1 ? i / (n - 1) : 1);
    /** @param {number} value */
    const y = (value) => height - BOTTOM - (height - TOP - BOTTOM) * value / top;
    this.drawAxes(context, width, height, top, y, x);
    layers.forEach((layer, k) => {
      const series = data.series[k];
      context.fillStyle = context.strokeStyle = colour(series.colour);
      if (series.kind === "stack")
        fillStack(context, layer, x, y);
      else
        strokeLine(context, layer, x, y);
    });
    this.drawMarks(context, data, n, x, height);
    if (this.cursor !== null) {
      context.fillStyle = colour("text");
      context.fillRect(Math.round(x(this.cursor)), TOP, 1, height - TOP - BOTTOM);
    }
    this.say(data, n);
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} width
   * @param {number} height
   * @param {number} top
   * @param {(value: number) => number} y
   * @param {(i: number) => number} x
   */
  drawAxes(context, width, height, top, y, x) {
    const data = /** @type {Data} */ (this.data), n = this.length();
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const value of [0, top / 2, top]) {
      context.fillStyle = colour("grid");
      context.fillRect(LEFT, Math.round(y(value)), width - LEFT - RIGHT, 1);
      context.fillStyle = colour("dim");
      context.fillText(figure(value), LEFT - 6, y(value));
    }
    context.textBaseline = "bottom";
    const minute = 60000 / data.intervalMs, each = width < 420 ? 5 : 2;
    for (let ago = 0; ago * minute < n; ago += each) {
      const at = x(n - 1 - ago * minute);
      context.textAlign = ago === 0 ? "right" : at < LEFT + 20 ? "left" : "center";
      context.fillText(ago === 0 ? "now" : `−${ago} min`, at, height);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {Data} data
   * @param {number} n
   * @param {(i: number) => number} x
   * @param {number} height
   */
  drawMarks(context, data, n, x, height) {
    const marks = data.marks ?? [];
    context.fillStyle = colour("bad");
    marks.forEach((times, i) => {
      if (times > 0) {
        const at = x(i + n - marks.length);
        context.fillRect(at - 0.5, TOP, 1, height - TOP - BOTTOM);
        context.beginPath();
        context.moveTo(at - 4, TOP - 4);
        context.lineTo(at + 4, TOP - 4);
        context.lineTo(at, TOP + 3);
        context.fill();
      }
    });
  }

  /**
   * Shows the values under the cursor, or the newest, in the legend.
   * @param {Data} data
   * @param {number} n
   */
  say(data, n) {
    const at = this.cursor ?? n - 1;
    const parts = data.series.map((series) => {
      const value = series.values[at - n + series.values.length];
      return {...series, text: value === null || value === undefined ? "–" : figure(value)};
    });
    if (this.legend.childElementCount !== parts.length + (this.markName ? 1 : 0))
      this.legend.replaceChildren();
    parts.forEach((part, i) => this.entry(i, part.colour, part.name, part.text));
    if (this.markName) {
      const total = (data.marks ?? []).reduce((sum, times) => sum + times, 0);
      this.entry(parts.length, "bad", this.markName, String(total));
    }
    setText(this.when, this.cursor === null ? "" : clockTime(data.newestMs - (n - 1 - at) * data.intervalMs));
    this.canvas.setAttribute("aria-label", `${this.title}, ${this.unit}: ${parts.map((part) => `${part.name} ${part.text}`).join(", ")}`);
  }

  /**
   * @param {number} i
   * @param {string} hue
   * @param {string} name
   * @param {string} value
   */
  entry(i, hue, name, value) {
    let entry = this.legend.children[i];
    if (!entry)
      this.legend.append(entry = h("span", {}, h("i", {}), h("span", {}), " ", h("b", {})));
    const [swatch, label, figures] = /** @type {HTMLElement[]} */ ([...entry.children]);
    swatch.style.background = `var(--${hue})`;
    setText(label, name);
    setText(figures, value);
  }
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {(number[] | null)[]} layer
 * @param {(i: number) => number} x
 * @param {(value: number) => number} y
 */
function fillStack(context, layer, x, y) {
  const half = (x(1) - x(0)) / 2;
  context.beginPath();
  for (const [side, order] of /** @type {[0 | 1, number][]} */ ([[1, 1], [0, -1]])) // along the top, back along the bottom
    for (let k = 0; k < layer.length; k++) {
      const i = order > 0 ? k : layer.length - 1 - k, level = y(layer[i]?.[side] ?? 0);
      context.lineTo(x(i) - order * half, level);
      context.lineTo(x(i) + order * half, level);
    }
  context.globalAlpha = 0.85;
  context.fill();
  context.globalAlpha = 1;
}

/**
 * @param {CanvasRenderingContext2D} context
 * @param {(number[] | null)[]} layer
 * @param {(i: number) => number} x
 * @param {(value: number) => number} y
 */
function strokeLine(context, layer, x, y) {
  context.beginPath();
  context.lineWidth = 1.6;
  context.lineJoin = "round";
  let pen = false;
  layer.forEach((part, i) => {
    if (part && pen)
      context.lineTo(x(i), y(part[1]));
    else if (part)
      context.moveTo(x(i), y(part[1]));
    pen = part !== null;
  });
  context.stroke();
}

/**
 * Draws bars without axes, the newest on the right.
 * @param {HTMLCanvasElement} canvas
 * @param {number[]} values
 * @param {string} hue
 */
export function sparkline(canvas, values, hue) {
  const {context, width, height} = prepareCanvas(canvas);
  const top = Math.max(1, ...values), step = width / Math.max(1, values.length);
  context.fillStyle = colour("grid");
  context.fillRect(0, height - 1, width, 1);
  context.fillStyle = colour(hue);
  values.forEach((value, i) => {
    if (value > 0)
      context.fillRect(i * step, height - Math.max(2, height * value / top), Math.max(1, step - 0.5), height);
  });
}
