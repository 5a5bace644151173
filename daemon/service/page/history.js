// The ten minutes that the daemon keeps of each camera.

import {WANTED_LOSSES} from "./words.js";

/**
 * Lists begin with the oldest sample, and count what came in an interval, or are ms; null: there was none.
 * @typedef {(number | null)[]} Samples
 * @typedef {{out: Samples, lost: Object<string, Samples>, latency: Object<string, Samples>, p99: Samples}} OutputHistory
 * @typedef {{in: Samples, decoded: Samples, reconnects: Samples, outputs: Object<string, OutputHistory>}} CameraHistory
 * @typedef {{interval_ms: number, newest: number, newest_ms: number, samples: number, cameras: Object<string, CameraHistory>}} History
 */

/** What was lost of late: the daemon is asked only for what has come since. */
export class Losses {
  /** @param {number} length  in samples */
  constructor(length) {
    this.length = length;
    this.newest = 0;
    /** By reason, all cameras together. @type {Map<string, number[]>} */
    this.ofReason = new Map();
    /** By camera, what nobody asked for. @type {Map<string, number[]>} */
    this.ofCamera = new Map();
  }

  clear() {
    this.newest = 0;
    this.ofReason.clear();
    this.ofCamera.clear();
  }

  /** The rest of what is missing here. */
  query() {
    return `api/v1/history?only=lost&samples=${this.length}${this.newest ? `&since=${this.newest}` : ""}`;
  }

  /** @param {History} history  that was asked for */
  take({newest, samples, cameras}) {
    if (newest - samples !== this.newest) // another daemon's, or what lies between is gone
      this.clear();
    this.newest = newest;
    for (const lists of [this.ofReason, this.ofCamera])
      for (const [key, list] of lists)
        lists.set(key, [...list, ...new Array(samples).fill(0)].slice(-this.length));
    for (const name of this.ofCamera.keys())
      if (!cameras[name])
        this.ofCamera.delete(name);
    for (const [name, {outputs}] of Object.entries(cameras)) {
      this.add(this.ofCamera, name, []);
      for (const {lost} of Object.values(outputs))
        for (const [reason, values] of Object.entries(lost)) {
          this.add(this.ofReason, reason, values);
          if (!WANTED_LOSSES.includes(reason))
            this.add(this.ofCamera, name, values);
        }
    }
  }

  /**
   * @param {Map<string, number[]>} lists
   * @param {string} key
   * @param {Samples} values  the newest
   */
  add(lists, key, values) {
    const list = lists.get(key) ?? new Array(this.length).fill(0);
    values.forEach((lost, i) => list[this.length - values.length + i] += lost ?? 0);
    lists.set(key, list);
  }

  /** @returns {[string, number][]}  how many for each reason, most first */
  byReason() {
    return [...this.ofReason].map(([reason, list]) => /** @type {[string, number]} */ ([reason, sum(list)])).filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1]);
  }

  /**
   * Of a camera, in so many parts of the time.
   * @param {string} name
   * @param {number} parts
   */
  bars(name, parts) {
    const list = this.ofCamera.get(name) ?? [], each = this.length / parts;
    return Array.from({length: parts}, (_, i) => sum(list.slice(i * each, (i + 1) * each)));
  }
}

/** @param {number[]} list */
function sum(list) {
  return list.reduce((all, n) => all + n, 0);
}
