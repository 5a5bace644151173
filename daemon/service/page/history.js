// The ten minutes of samples that the daemon keeps for each camera.

import {WANTED_LOSSES} from "./words.js";

/**
 * Lists begin with the oldest sample: a count per interval, or ms; null: none.
 * @typedef {(number | null)[]} Samples
 * @typedef {{out: Samples, lost: Object<string, Samples>, latency: Object<string, Samples>, p99: Samples}} OutputHistory
 * @typedef {{in: Samples, decoded: Samples, reconnects: Samples, outputs: Object<string, OutputHistory>}} CameraHistory
 * @typedef {{interval_ms: number, newest: number, newest_ms: number, samples: number, cameras: Object<string, CameraHistory>}} History
 */

/** Recent losses. Requests only new samples from the daemon. */
export class Losses {
  /** @param {number} length  in samples */
  constructor(length) {
    this.length = length;
    this.newest = 0;
    /** By reason, over all cameras. @type {Map<string, number[]>} */
    this.ofReason = new Map();
    /** By camera, without WANTED_LOSSES. @type {Map<string, number[]>} */
    this.ofCamera = new Map();
  }

  clear() {
    this.newest = 0;
    this.ofReason.clear();
    this.ofCamera.clear();
  }

  /** Returns the path to request the missing samples. */
  query() {
    return `api/v1/history?only=lost&samples=${this.length}${this.newest ? `&since=${this.newest}` : ""}`;
  }

  /** @param {History} history  the response to query() */
  take({newest, samples, cameras}) {
    if (newest - samples !== this.newest) // of another daemon, or samples in between are gone
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
   * @param {Samples} values  the newest samples
   */
  add(lists, key, values) {
    const list = lists.get(key) ?? new Array(this.length).fill(0);
    values.forEach((lost, i) => list[this.length - values.length + i] += lost ?? 0);
    lists.set(key, list);
  }

  /** @returns {[string, number][]}  counts by reason, largest first */
  byReason() {
    return [...this.ofReason].map(([reason, list]) => /** @type {[string, number]} */ ([reason, sum(list)])).filter(([, n]) => n > 0).sort((a, b) => b[1] - a[1]);
  }

  /**
   * Returns a camera's losses in equal parts of the time.
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
