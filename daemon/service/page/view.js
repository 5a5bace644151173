// Pictures of many cameras in one request: the daemon sends the newest of each as fast as this browser takes them.

import {request} from "./api.js";

/**
 * Facts, messages of kind 0, describe the pictures with the same index.
 * @typedef {{camera?: string, output?: string, width?: number, height?: number, source?: number[],
 *     dst_to_src?: number[], src_to_dst?: number[], channels?: {name?: string, min: number, mean: number, max: number}[],
 *     error?: string, [more: string]: any}} Facts
 * @typedef {{name: string, width: number, onPicture: (bitmap: CanvasImageSource, sent: Sent) => void,
 *     onFacts: (facts: Facts) => void}} Wish  name: CAMERA, CAMERA/OUTPUT or
 *     CAMERA/OUTPUT/PLANE
 * @typedef {{captureMs: number, sequence: bigint, epoch: number, flags: number, width: number, height: number}} Sent
 */

const HEADER_BYTES = 32;
const FACTS = 0, JPEG = 1;
const RETRY_MS = 1000, GATHER_MS = 60;

export class View {
  /**
   * @param {number} fps
   * @param {(problem: unknown) => void} tell  null: pictures come
   */
  constructor(fps, tell) {
    this.fps = fps;
    this.tell = tell;
    /** @type {Wish[]} */
    this.wishes = [];
    /** @type {AbortController | null} */
    this.abort = null;
    /** @type {number | undefined} */
    this.timer = undefined;
    this.asked = "";
    this.visibility = () => this.restart();
    document.addEventListener("visibilitychange", this.visibility);
  }

  /**
   * Sets the pictures to show; the stream restarts only if names or widths change.
   * @param {Wish[]} wishes
   */
  show(wishes) {
    this.wishes = wishes;
    const query = this.query();
    if (query !== this.asked) {
      clearTimeout(this.timer);
      this.timer = window.setTimeout(() => this.restart(), GATHER_MS);
    }
  }

  close() {
    document.removeEventListener("visibilitychange", this.visibility);
    this.wishes = [];
    this.restart();
  }

  query() {
    const list = this.wishes.map((wish) => `${wish.name.split("/").map(encodeURIComponent).join("/")}:${wish.width}`);
    return list.length ? `api/v1/view?c=${list.join(",")}&fps=${this.fps}` : "";
  }

  restart() {
    clearTimeout(this.timer);
    this.abort?.abort();
    this.abort = null;
    this.asked = document.hidden ? "" : this.query();
    if (this.asked)
      this.run(this.asked, this.abort = new AbortController());
  }

  /**
   * @param {string} path
   * @param {AbortController} abort
   */
  async run(path, abort) {
    const wishes = this.wishes.map((wish) => new Tile(wish, abort.signal));
    try {
      const response = await request(path, {signal: abort.signal});
      this.tell(null);
      await this.read(/** @type {ReadableStream<Uint8Array>} */ (response.body).getReader(), wishes);
      throw new Error("the stream of pictures ended");
    } catch (error) {
      if (abort.signal.aborted)
        return;
      this.tell(error);
      this.timer = window.setTimeout(() => this.restart(), RETRY_MS);
    }
  }

  /**
   * @param {ReadableStreamDefaultReader<Uint8Array>} reader
   * @param {Tile[]} tiles
   */
  async read(reader, tiles) {
    let held = new Uint8Array(1 << 16), from = 0, end = 0;
    for (;;) {
      const {done, value} = await reader.read();
      if (done)
        return;
      if (end + value.length > held.length) {
        const wanted = Math.max(end - from + value.length, 1 << 16);
        const next = wanted > held.length ? new Uint8Array(2 * wanted) : held;
        next.set(held.subarray(from, end));
        held = next;
        end -= from;
        from = 0;
      }
      held.set(value, end);
      end += value.length;
      while (end - from >= HEADER_BYTES) {
        const view = new DataView(held.buffer, from, HEADER_BYTES);
        const length = view.getUint32(0, true);
        if (end - from < HEADER_BYTES + length)
          break;
        this.take(view, held.slice(from + HEADER_BYTES, from + HEADER_BYTES + length), tiles);
        from += HEADER_BYTES + length;
      }
    }
  }

  /**
   * @param {DataView} view  of the header
   * @param {Uint8Array} body
   * @param {Tile[]} tiles
   */
  take(view, body, tiles) {
    const kind = view.getUint16(4, true), tile = tiles[view.getUint16(6, true)];
    if (kind === FACTS && tile)
      tile.takeFacts(JSON.parse(new TextDecoder().decode(body)));
    else if (kind === JPEG && tile)
      tile.takePicture(body, {
        captureMs: Number(view.getBigUint64(16, true)) / 1e6,
        sequence: view.getBigUint64(24, true),
        epoch: view.getUint32(8, true),
        flags: view.getUint32(12, true),
      });
  }
}

/** One wish of a request. Decodes one picture at a time, then the newest that has arrived meanwhile. */
class Tile {
  /**
   * @param {Wish} wish
   * @param {AbortSignal} signal
   */
  constructor(wish, signal) {
    this.wish = wish;
    this.signal = signal;
    this.busy = false;
    /** @type {[Uint8Array, any] | null} */
    this.next = null;
  }

  /** @param {Facts} facts */
  takeFacts(facts) {
    this.wish.onFacts(facts);
  }

  /**
   * @param {Uint8Array} jpeg
   * @param {any} sent
   */
  async takePicture(jpeg, sent) {
    this.next = [jpeg, sent];
    if (this.busy)
      return;
    this.busy = true;
    while (this.next && !this.signal.aborted) {
      const [data, of] = this.next;
      this.next = null;
      try {
        await decode(new Blob([data], {type: "image/jpeg"}), (picture, width, height) => {
          if (!this.signal.aborted)
            this.wish.onPicture(picture, {...of, width, height});
        });
      } catch (error) {
        this.wish.onFacts({error: `a picture cannot be decoded: ${error}`});
      }
    }
    this.busy = false;
  }
}

/**
 * @param {Blob} blob
 * @param {(picture: CanvasImageSource, width: number, height: number) => void} use  the picture is valid only in this call
 */
async function decode(blob, use) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(blob);
  } catch {
    return decodeByElement(blob, use);
  }
  use(bitmap, bitmap.width, bitmap.height);
  bitmap.close();
}

/**
 * Works in browsers whose createImageBitmap fails.
 * @param {Blob} blob
 * @param {(picture: CanvasImageSource, width: number, height: number) => void} use
 */
async function decodeByElement(blob, use) {
  const image = new Image();
  image.src = URL.createObjectURL(blob);
  try {
    await image.decode();
    use(image, image.naturalWidth, image.naturalHeight);
  } finally {
    URL.revokeObjectURL(image.src);
  }
}
