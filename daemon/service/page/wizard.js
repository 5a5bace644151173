// From an address to a camera that runs: find it, try it, choose what a detector wants, add it.

import {cameraPath, explain, send} from "./api.js";
import {copyButton, h, setText} from "./dom.js";
import {PicturePair} from "./picture.js";
import {onStatus, refresh} from "./status.js";
import {duration} from "./words.js";

/** Presets of framed.yaml(5), with a size that their models often have. @type {[string, string, string][]} */
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
    this.readonly = h("p", {class: "notice", hidden: true}, "This daemon is read-only (http_write: false): it neither tries nor adds cameras from here. The lines below can be copied.");
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
    this.stopStatus = onStatus((status) => {
      this.mayWrite = status.http_write !== false;
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
   * The address with what the camera asks for; `secret` stands for the password.
   * @param {string} secret
   */
  address(secret) {
    const url = this.url.value.trim() || "rtsp://10.0.0.5/stream1", user = encodeURIComponent(this.user.value);
    const [, scheme, rest] = url.match(/^([a-z+]+:\/\/)(?:[^/@]*@)?(.*)$/i) ?? [null, "", url];
    return user && scheme ? `${scheme}${user}${secret ? `:${secret}` : ""}@${rest}` : url;
  }

  /**
   * The camera's keys.
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
    const camera = this.camera(this.password.value ? `\${${variable}}` : ""), output = camera.outputs.detector;
    for (const element of this.own ?? [])
      element.hidden = Boolean(this.preset?.value);
    setText(this.yaml, ["cameras:", `  ${name}:`, `    url: ${camera.url}`, "    outputs:", "      detector:",
      ...(output.preset ? [`        preset: ${output.preset}`] : []), `        size: ${output.size}`,
      ...(output.tensor ? [`        tensor: {dtype: ${output.tensor.dtype}, order: ${output.tensor.order}}`] : []),
      `        sink: "${output.sink}"`, ""].join("\n"));
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

  discover() {
    return this.work(this.look, this.found, "Asking the network for three seconds…", async () => {
      const answer = await send("api/v1/discover"), list = Array.isArray(answer) ? answer : answer.cameras ?? [];
      if (list.length === 0)
        setHint(this.found, "No camera answered. Cameras answer where ONVIF is switched on, and in this daemon's own network alone.");
      else
        this.found.replaceChildren(h("ul", {class: "found"}, ...list.map((/** @type {any} */ camera) => this.foundCamera(camera))));
    });
  }

  /** @param {any} camera */
  foundCamera(camera) {
    const urls = [...(camera.urls ?? []), ...(camera.streams ?? [])];
    const title = [camera.name, camera.model].filter(Boolean).join(", ") || "Camera";
    const take = (/** @type {string} */ url) => {
      this.url.value = url;
      if (this.name && camera.name)
        this.name.value = camera.name.replace(/[^A-Za-z0-9_-]+/g, "-").slice(0, 31) || "camera";
      this.write();
      (this.user.value ? this.tryIt : this.user).focus();
    };
    return h("li", {}, h("b", {}, title), " ", h("code", {}, camera.address), h("div", {class: "row"}, ...(urls.length ? urls : [`rtsp://${camera.address}/`]).map((url) => {
      const text = typeof url === "string" ? url : url.url;
      return h("button", {type: "button", class: "quiet", onclick: () => take(text)}, `Use ${text}`);
    })));
  }

  probe() {
    return this.work(this.tryIt, this.probed, "Playing the camera for three seconds…", async () => {
      const told = await send("api/v1/probe", {url: this.url.value.trim(), user: this.user.value, password: this.password.value});
      /** @type {[string, any][]} */
      const rows = Object.entries(told).filter(([key, value]) => !["yaml", "fits"].includes(key) && value !== null).map(([key, value]) => [words(key), phrase(key, value)]);
      const fits = told.fits === undefined ? null : h("p", {class: `notice ${told.fits ? "good" : "bad"}`}, told.fits ? "It fits on this machine." : "It does not fit on this machine any more.");
      this.probed.replaceChildren(h("dl", {class: "facts"}, ...rows.flatMap(([name, value]) => [h("dt", {}, name), h("dd", {}, value)])), fits ?? "");
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
 * "keyframe_s" to "Keyframe".
 * @param {string} key
 */
function words(key) {
  const text = key.replace(/_(s|ms|mib|bytes|mb)$/, "").replaceAll("_", " ");
  return text[0].toUpperCase() + text.slice(1);
}

/**
 * @param {string} key
 * @param {any} value
 */
function phrase(key, value) {
  if (typeof value === "boolean")
    return value ? "yes" : "no";
  if (typeof value === "number")
    return `${Number.isInteger(value) ? value : value.toPrecision(3)}${/_s$/.test(key) ? " s" : /_ms$/.test(key) ? " ms" : /_mib$/.test(key) ? " MiB" : ""}`;
  if (Array.isArray(value))
    return value.join("×");
  return typeof value === "object" ? Object.entries(value).map(([name, each]) => `${words(name)} ${each}`).join(", ") : String(value);
}
