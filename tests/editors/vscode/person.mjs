/** What a person does in VS Code and sees there, for the tests that make screenshots. */

import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { browser, openForPerson, until } from './driver.mjs';

export const SETTINGS = {
  'files.autoSave': 'off',
  'editor.minimap.enabled': false,
  'telemetry.telemetryLevel': 'off',
  'workbench.startupEditor': 'none',
  'workbench.colorTheme': 'Dark Modern',
  'workbench.editor.empty.hint': 'hidden',
  'workbench.secondarySideBar.defaultVisibility': 'hidden',
  'workbench.reduceMotion': 'on',
  'chat.disableAIFeatures': true,
  // The functions of the examples are cheap.
  'rlm-lsp.hintsShown': 'all',
};

export class Person {
  number = 0;

  /** Open VS Code on a folder, with the extension of the vsix; `env` changes the environment, `trust` asks for trust. */
  static async at({ home, folder, vsix, screenshots, settings = {}, env = {}, trust = false }) {
    const person = new Person();
    person.settings = { ...SETTINGS, 'security.workspace.trust.enabled': trust, ...settings };
    person.screenshots = screenshots;
    mkdirSync(screenshots, { recursive: true });
    person.code = await openForPerson(home, folder, person.settings, ['--install-extension', vsix], env, trust);
    try {
      person.browser = await browser();
      const context = await person.browser.newContext({
        permissions: ['clipboard-read', 'clipboard-write'],
        viewport: { width: 1180, height: 740 },
        reducedMotion: 'reduce',
      });
      context.setDefaultTimeout(60_000);
      person.page = await context.newPage();
      await person.page.goto(person.code.url, { waitUntil: 'commit' });
      await person.page.locator('.monaco-workbench .part.sidebar').waitFor({ timeout: 120_000 });
      return person;
    } catch (error) {
      await person.leave();
      throw error;
    }
  }

  async leave() {
    await this.browser?.close();
    this.code.stop();
  }

  step(said) {
    console.log(`==> ${said}`);
  }

  async shot(name) {
    const file = `${name}.png`;
    await this.page.screenshot({ path: path.join(this.screenshots, file), animations: 'disabled' });
    console.log(`    ${file}`);
  }

  /** Change settings, as in the file of settings. */
  set(changes) {
    Object.assign(this.settings, changes);
    for (const [name, value] of Object.entries(changes)) {
      if (value === undefined) {
        delete this.settings[name];
      }
    }
    this.code.set(this.settings);
  }

  /** Open the list that a key opens, type a text, and take what is on top of the list, once that is as it should be. */
  async quickly(key, text, row) {
    const input = this.page.locator('.quick-input-widget input');
    await until(`"${row}" for ${text}`, async () => {
      // Something that has just been opened may take the focus, which closes the list.
      if (!(await input.isVisible())) {
        await this.page.keyboard.press(key);
      }
      await input.fill(text, { timeout: 5000 });
      const first = this.page.locator('.quick-input-list .monaco-list-row.focused', { hasText: row });
      // A key would go where the focus is by then: in an editor it would insert a line.
      await first.click({ timeout: 5000 });
      await this.page.mouse.move(0, 0);
      return true;
    });
  }

  command(title) {
    return this.quickly('F1', `>${title}`, title);
  }

  async open(name) {
    await this.quickly('Control+p', name, path.basename(name));
    await this.page.locator('.tab.active', { hasText: path.basename(name) }).waitFor();
  }

  /** Paste a text; typed text would be completed with quotes and brackets. */
  async paste(text) {
    await this.page.evaluate((copied) => navigator.clipboard.writeText(copied), text);
    await this.page.keyboard.press('Control+v');
  }

  toast(text) {
    return this.page.locator('.notification-toast', { hasText: text });
  }

  async press(text, label) {
    await this.toast(text).locator('.monaco-button', { hasText: label }).first().click();
  }

  /** Close a notification with its button for that. */
  async dismiss(text) {
    await this.toast(text).hover();
    await this.toast(text).locator('.codicon-notifications-clear').click();
    await this.toast(text).waitFor({ state: 'hidden' });
  }

  /** Take an entry of the menu of the item in the status bar. */
  async choose(words, entry) {
    await this.status(words).click();
    await this.page.locator('.quick-input-list .monaco-list-row', { hasText: entry }).click();
  }

  async closeToasts() {
    await this.command('Notifications: Clear All Notifications');
    await until('no notification', async () => (await this.page.locator('.notification-toast').count()) === 0);
  }

  /** The inlay hints that are on the screen, joined. */
  async hints() {
    const found = await this.page.locator('.monaco-editor .view-line [class*="dyn-rule"]').allTextContents();
    return found.join(' ').replace(/\u00a0/g, ' ');
  }

  /** The hints, once they are as they should be. */
  hintsLike(said, test, seconds = 120) {
    return until(
      `hints ${said}`,
      async () => {
        const text = await this.hints();
        return test(text) ? text : undefined;
      },
      seconds,
    );
  }

  /** The item of the extension in the status bar, once it says this. */
  status(words) {
    return this.page.locator('.statusbar-item', { hasText: `rlm-lsp: ${words}` });
  }

  squiggles() {
    return this.page.locator(
      '.monaco-editor .squiggly-warning, .monaco-editor .squiggly-error, .monaco-editor .squiggly-info',
    );
  }

  /** Scroll a hover until a piece of code in it can be seen. */
  async scrollTo(hover, hasText) {
    await hover.hover();
    const place = hover.locator('code', { hasText }).first();
    await until(`${hasText} in the hover`, async () => {
      const [code, around] = [await place.boundingBox(), await hover.boundingBox()];
      if (code.y + code.height + 10 < around.y + around.height) {
        return true;
      }
      await this.page.mouse.wheel(0, 100);
      return false;
    });
  }

  /** Put the mouse on a word of a line. */
  async pointAt(line, word) {
    await this.page.locator('.view-line', { hasText: line }).locator('span', { hasText: word }).last().hover();
  }

  /** The inside of the page of a network. */
  network() {
    return this.page.frameLocator('iframe.webview.ready >> visible=true').frameLocator('iframe#active-frame');
  }
}

/** The processes whose command line holds all of these words. */
export function processes(...words) {
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .filter((name) => {
      try {
        const line = readFileSync(`/proc/${name}/cmdline`, 'utf8').replace(/\0/g, ' ');
        return words.every((word) => line.includes(word));
      } catch {
        return false;
      }
    })
    .map(Number);
}
