// A camera's picture beside the tensor made of it: the same point is marked in both, and each has the outline of the other.

import {explain} from "./api.js";
import {colour, h, prepareCanvas, setText} from "./dom.js";
import {View} from "./view.js";

/** @typedef {import("./view.js").Facts} Facts
 *  @typedef {{x: number, y: number}} Point  in pixels; integers are at pixel centres
 *  @typedef {{box: number[], words: string}} Box  corners as edges, 0 to the width, in pixels of the source */

const FPS = 15, WIDEST = 1280;

/**
 * @param {number[]} m  2x3, row by row
 * @param {Point} p
 * @returns {Point}
 */
export function map(m, p) {
  return {x: m[0] * p.x + m[1] * p.y + m[2], y: m[3] * p.x + m[4] * p.y + m[5]};
}

/**
 * Returns the corners of a picture's outer edge.
 * @param {number} width
 * @param {number} height
 * @returns {Point[]}
 */
function corners(width, height) {
  return [[-0.5, -0.5], [width - 0.5, -0.5], [width - 0.5, height - 0.5], [-0.5, height - 0.5]].map(([x, y]) => ({x, y}));
}

/** A picture with an overlay. */
class Pane {
  /**
   * @param {string} title
   * @param {(pane: Pane, point: Point | null) => void} onPoint
   */
  constructor(title, onPoint) {
    this.onPoint = onPoint;
    /** @type {number[]} */
    this.size = [0, 0]; // in the same pixels as points
    /** @type {Point | null} */
    this.point = null;
    /** @type {Facts | null} */
    this.facts = null;
    this.canvas = h("canvas", {"aria-hidden": "true", width: 16, height: 9});
    this.over = h("canvas", {class: "overlay", "aria-hidden": "true"});
    this.none = h("span", {class: "none"}, "waiting for a picture");
    this.frame = h("div", {class: "frame", tabindex: "0", role: "img", "aria-label": `${title}. Arrow keys move the mark.`}, this.canvas, this.over, this.none);
    this.caption = h("h3", {}, title);
    this.small = h("small", {});
    this.element = h("figure", {class: "pane"}, h("figcaption", {}, this.caption, this.small), this.frame);
    this.frame.addEventListener("pointermove", (event) => this.move(event));
    this.frame.addEventListener("pointerleave", () => onPoint(this, null));
    this.frame.addEventListener("blur", () => onPoint(this, null));
    this.frame.addEventListener("keydown", (event) => this.key(event));
  }

  /**
   * @param {number} width
   * @param {number} height
   */
  setSize(width, height) {
    if (this.size[0] !== width || this.size[1] !== height) {
      this.size = [width, height];
      this.frame.style.aspectRatio = `${width} / ${height}`;
    }
  }

  /**
   * @param {CanvasImageSource} picture
   * @param {number} width
   * @param {number} height
   */
  draw(picture, width, height) {
    if (this.canvas.width !== width || this.canvas.height !== height)
      [this.canvas.width, this.canvas.height] = [width, height];
    if (!this.size[0])
      this.setSize(width, height);
    this.canvas.getContext("2d")?.drawImage(picture, 0, 0);
    this.none.hidden = true;
  }

  /** @param {PointerEvent} event */
  move(event) {
    const box = this.frame.getBoundingClientRect();
    if (this.size[0])
      this.onPoint(this, {
        x: (event.clientX - box.left) / box.width * this.size[0] - 0.5,
        y: (event.clientY - box.top) / box.height * this.size[1] - 0.5,
      });
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    /** @type {Object<string, number[]>} */
    const steps = {ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1]};
    const step = steps[event.key], [width, height] = this.size;
    if (!step || !width)
      return;
    event.preventDefault();
    const far = event.shiftKey ? 10 : 1, from = this.point ?? {x: Math.round(width / 2), y: Math.round(height / 2)};
    this.onPoint(this, {
      x: Math.max(0, Math.min(width - 1, Math.round(from.x) + step[0] * far)),
      y: Math.max(0, Math.min(height - 1, Math.round(from.y) + step[1] * far)),
    });
  }

  /** Returns functions that draw on the overlay in the picture's pixels. */
  brush() {
    const {context, width, height} = prepareCanvas(this.over);
    const [sx, sy] = [width / (this.size[0] || 1), height / (this.size[1] || 1)];
    /** @param {Point} p */
    const at = (p) => ({x: (p.x + 0.5) * sx, y: (p.y + 0.5) * sy});
    return {
      /**
       * @param {Point[]} points
       * @param {string} hue
       * @param {number[]} [dash]
       */
      outline(points, hue, dash = []) {
        context.setLineDash(dash);
        context.lineWidth = 2;
        context.strokeStyle = colour(hue);
        context.beginPath();
        for (const p of points.map(at)) // at its edge the frame would cut off half of a line
          context.lineTo(Math.max(1, Math.min(width - 1, p.x)), Math.max(1, Math.min(height - 1, p.y)));
        context.closePath();
        context.stroke();
        context.setLineDash([]);
      },
      /**
       * @param {Point} p
       * @param {string} text
       * @param {string} hue
       */
      label(p, text, hue) {
        const {x, y} = at(p);
        context.font = "12px system-ui, sans-serif";
        context.textBaseline = "top";
        const wide = context.measureText(text).width + 8, left = Math.max(0, Math.min(width - wide, x)), top = Math.max(0, y - 17);
        context.fillStyle = colour(hue);
        context.fillRect(left, top, wide, 17);
        context.fillStyle = "#fff";
        context.fillText(text, left + 4, top + 3);
      },
      /** @param {Point} p */
      cross(p) {
        const {x, y} = at(p);
        for (const [shade, wide] of /** @type {[string, number][]} */ ([["#000", 3], ["#ff3df2", 1]])) {
          context.strokeStyle = shade;
          context.lineWidth = wide;
          context.beginPath();
          context.moveTo(0, y);
          context.lineTo(width, y);
          context.moveTo(x, 0);
          context.lineTo(x, height);
          context.globalAlpha = wide === 3 ? 0.35 : 1;
          context.stroke();
          context.globalAlpha = 1;
        }
      },
    };
  }
}

export class PicturePair {
  /** @param {string} camera */
  constructor(camera) {
    this.camera = camera;
    this.output = "";
    this.plane = -1; // plane of the tensor on view; -1: all, as a picture
    /** @type {Box[]} */
    this.boxes = [];
    /** @type {number[][]} */
    this.motion = [];
    this.showsOutlines = true;
    this.source = new Pane("Source", (pane, point) => this.mark(pane, point));
    this.tensor = new Pane("Tensor", (pane, point) => this.mark(pane, point));
    this.where = h("p", {class: "where", role: "status"});
    this.notice = h("p", {class: "notice", hidden: true, role: "status"});
    this.planes = h("fieldset", {class: "choice", hidden: true}, h("legend", {class: "offscreen"}, "Plane of the tensor"));
    this.tensor.element.querySelector("figcaption")?.append(this.planes);
    this.numbers = h("tbody", {});
    this.table = h("table", {class: "channels", hidden: true}, h("caption", {}, "Elements of the tensor"),
      h("thead", {}, h("tr", {}, ...["Channel", "Min", "Mean", "Max"].map((name) => h("th", {scope: "col"}, name)))), this.numbers);
    this.element = h("section", {class: "pair", "aria-label": "Pictures"}, this.notice,
      h("div", {class: "panes"}, this.source.element, this.tensor.element, h("div", {}, this.where, this.table)));
    this.view = new View(FPS, (problem) => {
      this.notice.hidden = !problem;
      if (problem)
        setText(this.notice, `No pictures: ${explain(problem)}`);
    });
    this.resized = () => this.ask();
    window.addEventListener("resize", this.resized);
    this.tell(null, null);
  }

  close() {
    window.removeEventListener("resize", this.resized);
    this.view.close();
  }

  /** @param {string} output  "": no output has pictures */
  choose(output) {
    if (output !== this.output) {
      this.output = output;
      this.plane = -1;
      this.tensor.facts = null;
      this.tensor.size = [0, 0];
      this.tensor.none.hidden = false;
      this.table.hidden = this.planes.hidden = true;
      this.tensor.canvas.width = 16;
    }
    this.tensor.element.hidden = !output;
    setText(this.tensor.caption, output);
    this.ask();
  }

  /** @param {string} state  why there are no pictures; "": there are */
  wait(state) {
    this.element.classList.toggle("stale", state !== "");
    for (const pane of [this.source, this.tensor])
      if (!pane.facts?.error)
        setText(pane.none, state || "waiting for a picture");
  }

  ask() {
    /** @param {Pane} pane */
    const width = (pane) => {
      const wanted = (pane.element.clientWidth || 640) * (window.devicePixelRatio || 1);
      return Math.min(WIDEST, Math.max(320, Math.ceil(wanted / 160) * 160));
    };
    const source = this.wish(this.source, this.camera, width(this.source));
    const name = `${this.camera}/${this.output}`, tensor = this.wish(this.tensor, name, width(this.tensor));
    if (!this.output)
      this.view.show([source]);
    else if (this.plane < 0)
      this.view.show([source, tensor]);
    else // the picture of the plane, the figures of all channels
      this.view.show([source, {...tensor, onPicture: () => {}}, {...this.wish(this.tensor, `${name}/${this.plane}`, tensor.width), onFacts: () => {}}]);
  }

  /**
   * @param {Pane} pane
   * @param {string} name
   * @param {number} width
   * @returns {import("./view.js").Wish}
   */
  wish(pane, name, width) {
    return {
      name, width,
      onFacts: (facts) => this.takeFacts(pane, facts),
      onPicture: (picture, sent) => {
        pane.draw(picture, sent.width, sent.height);
        pane.canvas.dataset.sequence = String(sent.sequence);
        this.overlay();
      },
    };
  }

  /**
   * @param {Pane} pane
   * @param {Facts} facts
   */
  takeFacts(pane, facts) {
    if (facts.error) {
      pane.none.hidden = false;
      setText(pane.none, facts.error);
      return;
    }
    pane.facts = {...pane.facts, ...facts};
    const [width, height] = pane === this.source && facts.source ? facts.source : [facts.width ?? 0, facts.height ?? 0];
    if (width && height)
      pane.setSize(width, height);
    if (pane === this.source)
      setText(pane.small, width ? `${width}×${height}` : "");
    else
      this.describe(pane.facts);
    this.overlay();
  }

  /** @param {Facts} facts */
  describe(facts) {
    setText(this.tensor.small, [`${facts.width}×${facts.height}`, facts.dtype, facts.layout, facts.order, facts.format].filter(Boolean).join(" "));
    const channels = facts.channels ?? [];
    const name = (/** @type {number} */ i) => (channels[i]?.name ?? String(i)).toUpperCase();
    this.table.hidden = channels.length === 0;
    this.numbers.replaceChildren(...channels.map((channel, i) => h("tr", {}, h("th", {scope: "row"}, name(i)),
      ...[channel.min, channel.mean, channel.max].map((value) => h("td", {}, number(value))))));
    const names = channels.length > 1 ? ["All", ...channels.map((_, i) => name(i))] : [];
    const labels = [...this.planes.querySelectorAll("label")];
    this.planes.hidden = names.length === 0;
    if (labels.map((label) => label.textContent).join() === names.join())
      return;
    for (const label of labels)
      label.remove();
    for (let i = -1; i < names.length - 1; i++)
      this.planes.append(h("label", {}, h("input", {type: "radio", name: "plane", checked: i === this.plane, onchange: () => {
        this.plane = i;
        this.ask();
      }}), h("span", {}, names[i + 1])));
  }

  /**
   * @param {Pane} pane
   * @param {Point | null} point
   */
  mark(pane, point) {
    const matrices = this.tensor.facts, other = pane === this.source ? this.tensor : this.source;
    const matrix = pane === this.source ? matrices?.src_to_dst : matrices?.dst_to_src;
    pane.point = point;
    other.point = point && matrix && this.output ? map(matrix, point) : null;
    this.tell(this.source.point, this.tensor.point);
    this.overlay();
  }

  /**
   * @param {Point | null} source
   * @param {Point | null} tensor
   */
  tell(source, tensor) {
    /**
     * @param {Point} p
     * @param {Pane} pane
     */
    const words = (p, pane) => {
      const outside = p.x < -0.5 || p.y < -0.5 || p.x > pane.size[0] - 0.5 || p.y > pane.size[1] - 0.5;
      return `${p.x.toFixed(1)}, ${p.y.toFixed(1)}${outside ? " (outside)" : ""}`;
    };
    const parts = [source && `source ${words(source, this.source)}`, tensor && `${this.output} ${words(tensor, this.tensor)}`];
    setText(this.where, parts.filter(Boolean).join("  ↔  ") || "Move over a picture: the same point is marked in the other, with its coordinates.");
  }

  overlay() {
    const facts = this.output ? this.tensor.facts : null;
    const [width, height] = this.tensor.size;
    const onSource = this.source.brush(), onTensor = this.tensor.brush();
    const source = facts?.source ?? this.source.facts?.source;
    if (this.showsOutlines && facts?.dst_to_src && facts.src_to_dst && source && width) {
      const {dst_to_src: back, src_to_dst: there} = facts;
      onSource.outline(corners(width, height).map((p) => map(back, p)), "outline", [6, 4]);
      const [x, y, w, t] = facts.crop ?? [0, 0, source[0], source[1]];
      const used = corners(w, t).map((p) => ({x: p.x + x, y: p.y + y}));
      if (facts.crop)
        onSource.outline(used, "inner");
      onTensor.outline(used.map((p) => map(there, p)), "inner", [6, 4]);
    }
    for (const [x1, y1, x2, y2] of this.motion)
      onSource.outline([[x1, y1], [x2, y1], [x2, y2], [x1, y2]].map(([x, y]) => ({x: x - 0.5, y: y - 0.5})), "motion", [2, 3]);
    for (const {box: [x1, y1, x2, y2], words} of this.boxes) {
      const points = [[x1, y1], [x2, y1], [x2, y2], [x1, y2]].map(([x, y]) => ({x: x - 0.5, y: y - 0.5}));
      onSource.outline(points, "mark");
      onSource.label(points[0], words, "mark");
      if (facts?.src_to_dst) {
        const there = facts.src_to_dst, mapped = points.map((p) => map(there, p));
        onTensor.outline(mapped, "mark");
        onTensor.label(mapped[0], words, "mark");
      }
    }
    if (this.source.point)
      onSource.cross(this.source.point);
    if (this.tensor.point)
      onTensor.cross(this.tensor.point);
  }
}

/** @param {number} value */
function number(value) {
  return Number.isInteger(value) ? String(value) : value.toPrecision(4);
}
