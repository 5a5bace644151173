// The configuration: its file with every mistake, what runs, what a reload would change, and a check of pasted text.

import {explain, getJson, send} from "./api.js";
import {CodeEditor, CodeView, mistakeList} from "./code.js";
import {copyButton, h, setText} from "./dom.js";
import {onStatus} from "./status.js";

const CHECK_MS = 400;

export class ConfigPage {
  /** @param {HTMLElement} main */
  constructor(main) {
    this.path = h("code", {});
    this.notice = h("p", {class: "notice", role: "status"}, "Reading the configuration.");
    this.mistakes = h("div", {});
    this.changes = h("div", {});
    this.file = new CodeView("The file");
    this.running = new CodeView("What runs, with every key");
    this.runningText = "";
    this.reload = h("button", {type: "button", class: "primary", onclick: () => this.reloadNow()}, "Reload");
    this.again = h("button", {type: "button", class: "quiet", onclick: () => this.load()}, "Read again");
    this.verdict = h("p", {class: "verdict", role: "status"});
    this.found = h("div", {});
    this.editor = new CodeEditor("Configuration to check", "Paste a configuration here. Nothing is saved.", () => this.checkSoon());
    main.append(h("div", {class: "row title"}, h("h1", {}, "Configuration"), this.path, h("div", {class: "row actions"}, this.again, this.reload)),
      this.notice, this.mistakes,
      h("section", {class: "changes"}, h("h2", {}, "What a reload would change"), this.changes),
      h("div", {class: "halves"},
        h("section", {}, h("h2", {}, "The file"), this.file.element),
        h("section", {}, h("div", {class: "row"}, h("h2", {}, "What runs"), copyButton(() => this.runningText, "what runs")), this.running.element)),
      h("section", {}, h("h2", {}, "Check a text"), this.verdict, this.found, this.editor.element));
    this.stopStatus = onStatus((status) => this.reload.hidden = status.http_write === false);
    this.load();
  }

  close() {
    this.stopStatus();
    clearTimeout(this.timer);
  }

  /**
   * @param {string} words
   * @param {string} level
   */
  tell(words, level) {
    this.notice.className = `notice ${level}`;
    setText(this.notice, words);
  }

  async load() {
    try {
      const {path, text, running, mistakes, changes} = await getJson("api/v1/config");
      setText(this.path, path);
      this.file.set(text ?? "", mistakes);
      this.runningText = running ?? "";
      this.running.set(this.runningText, []);
      this.mistakes.replaceChildren(mistakes.length ? mistakeList(mistakes, (mistake) => this.file.go(mistake.line)) : "");
      if (mistakes.length)
        this.tell(`The file has ${mistakes.length} mistake${mistakes.length === 1 ? "" : "s"}; what ran before goes on.`, "bad");
      else
        this.tell("The file has no mistake.", "good");
      this.reload.disabled = mistakes.length > 0;
      this.changes.replaceChildren(changes.length
        ? h("ul", {}, ...changes.map((/** @type {any} */ change) => h("li", {}, typeof change === "string" ? change : change.text ?? JSON.stringify(change))))
        : h("p", {class: "hint"}, mistakes.length ? "Nothing: a file with mistakes is not taken." : "Nothing: the file is what runs."));
    } catch (problem) {
      this.tell(`The configuration cannot be shown. ${explain(problem)}`, "bad");
    }
  }

  async reloadNow() {
    this.reload.disabled = true;
    try {
      await send("api/v1/reload");
      await this.load();
      this.tell("Reloaded.", "good");
    } catch (problem) {
      this.tell(`Not reloaded. ${explain(problem)}`, "bad");
    }
    this.reload.disabled = false;
  }

  checkSoon() {
    clearTimeout(this.timer);
    this.timer = window.setTimeout(() => this.check(), CHECK_MS);
  }

  async check() {
    const text = this.editor.text();
    if (!text.trim()) {
      this.show([], "", "");
      return;
    }
    try {
      const {mistakes} = await send("api/v1/check", {text});
      if (text !== this.editor.text())
        return;
      const n = mistakes.length;
      this.show(mistakes, n ? `${n} mistake${n === 1 ? "" : "s"}` : "No mistake.", n ? "bad" : "good");
    } catch (problem) {
      this.show([], `Not checked. ${explain(problem)}`, "bad");
    }
  }

  /**
   * @param {import("./code.js").Mistake[]} mistakes
   * @param {string} words
   * @param {string} level
   */
  show(mistakes, words, level) {
    this.verdict.className = `verdict ${level}`;
    setText(this.verdict, words);
    this.editor.mark(mistakes);
    this.found.replaceChildren(mistakes.length ? mistakeList(mistakes, (mistake) => this.editor.go(mistake.line, mistake.column)) : "");
  }
}
