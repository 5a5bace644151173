// From an address to a running camera: find it, try it, choose a detector's input, add it.

import {cameraPath, explain, send} from "./api.js";
import {copyButton, h, setText} from "./dom.js";
import {PicturePair} from "./picture.js";
import {onSummary, refresh} from "./status.js";
import {bitRate, bytes, duration, rate} from "./words.js";

/** Presets of framed.yaml(5), with a size that is common for their models. @type {[string, string, string][]} */
const PRESETS = [
  ["ultralytics", "640x640", "YOLOv5 to YOLO26 (Ultralytics)"], ["yolox", "640x640", "YOLOX"], ["mmdet", "640x640", "RTMDet and others of MMDetection"],
  ["stretch", "640x640", "RT-DETR and others that stretch"], ["imagenet-stretch", "640x640", "stretched, ImageNet's mean and std"],
  ["opencv-blob", "320x320", "OpenCV's blobFromImage"], ["deepstream", "640x640", "DeepStream"], ["", "640x640", "my own choice"],
];

export class Wizard {
  /** @param {HTMLElement} main */
  constructor(main) {
    this.mayWrite = true;
    /** @type {PicturePair | null} */
    this.pair = null;
    this.url = h("input", {type: "text", inputmode: "url", required: true, placeholder: "rtsp://10.0.0.5/stream1", autocomplete: "off", spellcheck: "false"});
    this.user = h("input", {type: "text", autocomplete: "off", spellcheck: "false"});
    this.password = h("input", {type: "password", autocomplete: "off"});
    this.found = h("div", {role: "status"});
    this.look = h("button", {type: "button", onclick: () => this.discover()}, "Look for cameras");
    this.tryIt = h("button", {type: "submit", class: "primary"}, "Try it");
    this.readonly = h("p", {class: "notice", hidden: true}, "This page is read-only (http_write: false, or the token only reads): it neither tries nor adds cameras. The lines below can be copied.");
    this.probed = h("div", {role: "status"});
    this.choice = this.choices();
    this.yaml = h("pre", {tabindex: "0", "aria-label": "Lines for the configuration"});
    this.add = h("button", {type: "button", class: "primary", onclick: () => this.addNow()}, "Add it now");
    this.added = h("div", {role: "status"});
    this.pictures = h("div", {});
    const form = h("form", {onsubmit: (/** @type {Event} */ event) => {
      event.preventDefault();
      this.probe();
    }}, h("div", {class: "fields"}, field("Address", this.url, "wide"), field("User", this.user), field("Password", this.password)),
    h("div", {class: "row"}, this.tryIt, this.look), this.found);
    main.append(h("h1", {}, "New camera"), this.readonly,
      h("ol", {class: "steps"},
        h("li", {}, h("h2", {}, "Where is it?"), form),
        h("li", {}, h("h2", {}, "What does it send?"), this.probed),
        h("li", {}, h("h2", {}, "What does the detector want?"), this.choice),
        h("li", {}, h("h2", {}, "Take it in"), h("div", {class: "command"}, h("p", {}, "Lines for the configuration", copyButton(() => this.yaml.textContent ?? "", "the lines")), this.yaml),
          h("div", {class: "row"}, this.add), this.added, this.pictures)));
    setHint(this.probed, "Try it first: framed plays the camera for three seconds.");
    for (const input of [this.url, this.user, this.password])
      input.addEventListener("input", () => this.write());
    this.stopStatus = onSummary((status) => {
      this.mayWrite = status.http_write;
      this.readonly.hidden = this.mayWrite;
      this.add.hidden = this.look.hidden = this.tryIt.hidden = !this.mayWrite;
    });
    this.write();
  }

  close() {
    this.stopStatus();
    this.pair?.close();
  }

  choices() {
    const changed = () => this.write();
    this.name = h("input", {type: "text", required: true, value: "camera", pattern: "[A-Za-z0-9_\\-]{1,31}", spellcheck: "false", oninput: changed});
    this.preset = h("select", {onchange: () => {
      if (this.size && this.preset)
        this.size.value = PRESETS[this.preset.selectedIndex][1];
      this.write();
    }}, ...PRESETS.map(([name, , words]) => h("option", {value: name}, name ? `${name}: ${words}` : words)));
    this.size = h("input", {type: "text", value: "640x640", pattern: "[0-9]+x[0-9]+", oninput: changed});
    this.dtype = h("select", {onchange: changed}, ...["u8", "f32", "f16", "s8"].map((name) => h("option", {}, name)));
    this.order = h("select", {onchange: changed}, ...["rgb", "bgr", "gray"].map((name) => h("option", {}, name)));
    this.sink = h("input", {type: "text", placeholder: "ring:/run/framed/NAME.ring", spellcheck: "false", oninput: changed});
    this.own = [field("Elements", this.dtype), field("Channels", this.order)];
    return h("div", {class: "fields"}, field("Name", this.name), field("Preset", this.preset, "wide"), field("Size", this.size), ...this.own, field("Sink", this.sink, "wide"));
  }

  /**
   * Returns the address with the user, and `secret` in place of the password.
   * @param {string} secret
   */
  address(secret) {
    const url = this.url.value.trim() || "rtsp://10.0.0.5/stream1", user = encodeURIComponent(this.user.value);
    const [, scheme, rest] = url.match(/^([a-z+]+:\/\/)(?:[^/@]*@)?(.*)$/i) ?? [null, "", url];
    return user && scheme ? `${scheme}${user}${secret ? `:${secret}` : ""}@${rest}` : url;
  }

  /**
   * Returns the camera's keys.
   * @param {string} secret
   */
  camera(secret) {
    const name = this.name?.value || "camera", preset = this.preset?.value;
    /** @type {Object<string, any>} */
    const output = preset ? {preset} : {};
    output.size = this.size?.value || "640x640";
    if (!preset)
      output.tensor = {dtype: this.dtype?.value, order: this.order?.value};
    output.sink = this.sink?.value || `ring:/run/framed/${name}.ring`;
    return {url: this.address(secret), outputs: {detector: output}};
  }

  write() {
    const name = this.name?.value || "camera", variable = `${name.toUpperCase().replace(/[^A-Z0-9]/g, "_")}_PASSWORD`;
    const place = "\0", camera = this.camera(this.password.value ? place : ""), output = camera.outputs.detector;
    // Dollar signs from the user or a camera are literal.
    const literal = (/** @type {string} */ text) => text.replaceAll("$", "$$$$"), url = literal(camera.url).replace(place, () => `\${${variable}}`);
    for (const element of this.own ?? [])
      element.hidden = Boolean(this.preset?.value);
    setText(this.yaml, ["cameras:", `  ${name}:`, `    url: ${scalar(url)}`, "    outputs:", "      detector:",
      ...(output.preset ? [`        preset: ${output.preset}`] : []), `        size: ${output.size}`,
      ...(output.tensor ? [`        tensor: {dtype: ${output.tensor.dtype}, order: ${output.tensor.order}}`] : []),
      `        sink: ${JSON.stringify(literal(output.sink))}`, ""].join("\n"));
  }

  /**
   * @param {HTMLButtonElement} button
   * @param {HTMLElement} place
   * @param {string} words
   * @param {() => Promise<void>} act
   */
  async work(button, place, words, act) {
    button.disabled = true;
    setHint(place, words);
    try {
      await act();
    } catch (problem) {
      place.replaceChildren(h("p", {class: "notice bad"}, explain(problem)));
    }
    button.disabled = false;
  }

  login() {
    return {user: this.user.value, password: this.password.value};
  }

  discover() {
    return this.work(this.look, this.found, "Asking the network…", async () => {
      const list = await send("api/v1/discover", {});
      if (list.length === 0)
        setHint(this.found, "No camera answered. Those answer that have ONVIF switched on, in the networks of the daemon's own machine.");
      else
        this.found.replaceChildren(h("ul", {class: "found"}, ...list.map((/** @type {any} */ camera) => this.foundCamera(camera))));
    });
  }

  /**
   * Queries one listed camera with the user and the password above, and replaces its entry in the list.
   * @param {any} camera
   * @param {HTMLElement} item
   * @param {HTMLButtonElement} button
   */
  async logIn(camera, item, button) {
    if (!this.user.value || !this.password.value) {
      (this.user.value ? this.password : this.user).focus();
      return;
    }
    const place = h("div", {});
    item.append(place);
    await this.work(button, place, "Asking the camera…", async () => {
      const list = await send("api/v1/discover", {addresses: [camera.address], ...this.login()});
      if (list.length === 0)
        setHint(place, "The camera did not answer this time.");
      else
        item.replaceWith(...list.map((/** @type {any} */ one) => this.foundCamera(one)));
    });
  }

  /**
   * @param {any} camera
   * @returns {HTMLElement}
   */
  foundCamera(camera) {
    const title = [camera.name, camera.manufacturer, camera.model].filter(Boolean).join(", ") || "A camera";
    const take = (/** @type {string} */ url) => {
      this.url.value = url;
      if (this.name)
        this.name.value = camera.name.replace(/[^A-Za-z0-9_-]+/g, "-").slice(0, 31) || "camera";
      this.write();
      (this.user.value ? this.tryIt : this.user).focus();
    };
    const logIn = h("button", {type: "button", class: "quiet", hidden: !camera.wants_login, onclick: () => this.logIn(camera, item, logIn)}, "Log in to this camera");
    const hint = camera.wants_login ? `It ${camera.error}. Give a user and a password above for this camera alone.` : camera.error;
    const item = h("li", {}, h("b", {}, title), " ", h("code", {}, camera.address), hint ? h("p", {class: "hint"}, hint) : null,
      h("div", {class: "row"}, logIn, ...camera.streams.map((/** @type {any} */ stream) => h("button", {type: "button", class: "quiet", onclick: () => take(stream.url)},
        `Use ${stream.url}`, stream.width ? ` (${stream.codec} ${stream.width}×${stream.height})` : ""))));
    return item;
  }

  probe() {
    return this.work(this.tryIt, this.probed, "Playing the camera for three seconds…", async () => {
      const {stream, cost, error, wants_login: wantsLogin} = await send("api/v1/probe", {url: this.url.value.trim(), ...this.login()});
      if (error) {
        this.probed.replaceChildren(h("p", {class: "notice bad"}, wantsLogin ? "The camera wants a user and a password, or other ones." : `${error}.`));
        return;
      }
      const rows = [...streamRows(stream), ...costRows(cost)].filter(([, value]) => value);
      this.probed.replaceChildren(h("dl", {class: "facts"}, ...rows.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])),
        h("p", {class: `notice ${cost.fits ? "good" : "bad"}`}, cost.fits ? "It fits on this machine." : `It does not fit on this machine: ${cost.why}.`));
    });
  }

  addNow() {
    return this.work(this.add, this.added, "Adding it…", async () => {
      const name = this.name?.value || "camera", started = Date.now();
      await send(cameraPath(name), this.camera(encodeURIComponent(this.password.value)), "PUT");
      this.added.replaceChildren(h("p", {class: "notice good"}, `${name} was added in ${duration((Date.now() - started) / 1000)}. `, h("a", {href: `#/camera/${encodeURIComponent(name)}`}, "Its page")));
      this.pair?.close();
      this.pair = new PicturePair(name);
      this.pictures.replaceChildren(this.pair.element);
      this.pair.choose("detector");
      await refresh();
    });
  }
}

/**
 * Writes a text as a YAML scalar, quoted if needed.
 * @param {string} text
 */
function scalar(text) {
  return /^[\w/][^\s'"#]*$/.test(text) && !text.endsWith(":") ? text : JSON.stringify(text);
}

/**
 * @param {string} name
 * @param {HTMLElement} input
 * @param {string} [kind]
 */
function field(name, input, kind = "") {
  return h("label", {class: `field ${kind}`}, h("span", {}, name), input);
}

/**
 * @param {HTMLElement} place
 * @param {string} words
 */
function setHint(place, words) {
  place.replaceChildren(h("p", {class: "hint"}, words));
}

/**
 * Returns rows about a camera's stream, from /api/v1/probe.
 * @param {any} stream
 * @returns {[string, string][]}
 */
function streamRows(stream) {
  return [
    ["Codec", `${stream.codec} ${stream.profile ?? ""}`], ["Size", `${stream.width}×${stream.height}`], ["Frames", `${rate(stream.fps)} per second`],
    ["Bit rate", stream.bits_per_second ? bitRate(stream.bits_per_second) : ""],
    ["Keyframes", stream.keyframe_seconds ? `every ${duration(stream.keyframe_seconds)}` : "none but the first"],
    ["Clock", stream.clock ? "the camera tells the time of its pictures" : "the camera does not tell the time: pictures count from their arrival"],
    ["Damaged", `${stream.damaged} of ${stream.pictures} pictures in ${duration(stream.seconds)}`],
    ["First picture", `after ${duration(stream.first_picture_ms / 1000)}`],
  ];
}

/**
 * Returns rows about its cost on this machine, from /api/v1/probe.
 * @param {any} cost
 * @returns {[string, string][]}
 */
function costRows(cost) {
  const mib = (/** @type {number} */ value) => bytes(value * (1 << 20));
  const free = (/** @type {number | null} */ value, /** @type {string} */ words) => value === null ? "" : ` of ${words} that are free`;
  return [
    ["Decoder", `${cost.decoder}, ${cost.decode_ms.toFixed(1)} ms a picture`],
    ["NVDEC", cost.nvdec === null ? "not on this machine" : cost.nvdec ? "takes it" : "does not take it"],
    ["Processor", `${cost.cores.toFixed(2)}${free(cost.cores_free, `${cost.cores_free?.toFixed(2)} cores`)}`],
    ["Memory", `${mib(cost.memory_mib)}${free(cost.memory_free_mib, mib(cost.memory_free_mib))}`],
    ["GPU's memory", cost.gpu_memory_mib ? mib(cost.gpu_memory_mib) : ""],
  ];
}
