// The configuration: its file with every mistake, the changes that a reload would make, and a check of pasted text.

import {explain, getJson, hasToken, send} from "./api.js";
import {CodeEditor, CodeView, mistakeList} from "./code.js";
import {h, setText} from "./dom.js";
import {onSummary} from "./status.js";

/** @typedef {import("./code.js").Mistake} Mistake */

const CHECK_MS = 400;

export class ConfigPage {
  /** @param {HTMLElement} main */
  constructor(main) {
    this.path = h("code", {});
    this.notice = h("p", {class: "notice", role: "status"}, "Reading the configuration.");
    this.mistakes = h("div", {});
    this.changes = h("div", {});
    this.file = new CodeView("The file");
    this.running = new CodeView("What runs");
    this.reload = h("button", {type: "button", class: "primary", onclick: () => this.reloadNow()}, "Reload");
    this.again = h("button", {type: "button", class: "quiet", onclick: () => this.load()}, "Read again");
    this.verdict = h("p", {class: "verdict", role: "status"});
    this.found = h("div", {});
    this.editor = new CodeEditor("Configuration to check", "Paste a configuration here. Nothing is saved.", () => this.checkSoon());
    this.checking = h("section", {}, h("h2", {}, "Check a text"), this.verdict, this.found, this.editor.element);
    main.append(h("div", {class: "row title"}, h("h1", {}, "Configuration"), this.path, h("div", {class: "row actions"}, this.again, this.reload)),
      this.notice, this.mistakes,
      h("section", {class: "changes"}, h("h2", {}, "What a reload would change"), this.changes),
      h("div", {class: "halves"},
        h("section", {}, h("h2", {}, "The file"), this.file.element),
        h("section", {}, h("h2", {}, "What runs"), this.running.element)),
      this.checking);
    this.stopStatus = onSummary((status) => {
      this.reload.hidden = !status.http_write;
      this.checking.hidden = !status.http_write && hasToken();  // the token may be read-only
    });
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
      this.file.set(text ?? "", []);
      this.running.set(running, []);
      this.mistakes.replaceChildren(...(mistakes.length ? [mistakeList(mistakes, path, () => {})] : []));
      if (mistakes.length)
        this.tell(`${mistakes.length} mistake${mistakes.length === 1 ? "" : "s"}: a reload would be refused, and what runs goes on.`, "bad");
      else
        this.tell("No mistake.", "good");
      this.reload.disabled = mistakes.length > 0;
      this.changes.replaceChildren(changes.length
        ? h("ul", {}, ...changes.map((/** @type {{text: string}} */ change) => h("li", {}, change.text)))
        : h("p", {class: "hint"}, mistakes.length ? "Nothing: a file with mistakes is not taken." : "Nothing: the file is what runs."));
    } catch (problem) {
      this.tell(`The configuration cannot be shown. ${explain(problem)}`, "bad");
    }
  }

  async reloadNow() {
    this.reload.disabled = true;
    try {
      const {done} = await send("api/v1/reload");
      await this.load();
      this.tell(`Reloaded: ${done}.`, "good");
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
   * @param {Mistake[]} mistakes
   * @param {string} words
   * @param {string} level
   */
  show(mistakes, words, level) {
    this.verdict.className = `verdict ${level}`;
    setText(this.verdict, words);
    this.editor.mark(mistakes);
    this.found.replaceChildren(mistakes.length ? mistakeList(mistakes, this.path.textContent ?? "", (mistake) => this.editor.go(mistake.line ?? 1, mistake.column)) : "");
  }
}
