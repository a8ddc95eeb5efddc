/**
 * A user's journey through the extension in the real VS Code: install, hint, hover, an edit that makes a function more
 * expensive, a budget that is exceeded and met again, a killed server, a language without predictions, networks, the
 * overview.
 * `node journey.mjs VSIX WORKSPACE SCREENSHOTS` exits with 1 at the first failure.
 */

import { readFileSync } from 'node:fs';
import path from 'node:path';

import { until } from './driver.mjs';
import { Person, processes } from './person.mjs';

const [vsix, workspace, screenshots] = process.argv.slice(2, 5).map((name) => path.resolve(name));
// For work on one step, in a home folder in which the first has been taken.
const only = process.argv[5];
const edit = JSON.parse(readFileSync(path.join(workspace, 'edit.json'), 'utf8'));
const home = path.join(workspace, 'home');
const person = await Person.at({ home, folder: path.join(workspace, 'shop'), vsix, screenshots });
const { page } = person;
const toPlot = () =>
  person
    .network()
    .locator('h2', { hasText: 'Models in' })
    .evaluate((title) => title.scrollIntoView());
const isCost = (text) => /\d (ns|µs|ms)/.test(text);

const steps = [
  [
    'first run: the server is installed after asking, from the menu because the notification was dismissed',
    async () => {
      await person.open('functions.py');
      await person.toast('not installed yet').waitFor({ timeout: 60_000 });
      await person.shot('install');
      await person.dismiss('not installed yet');
      await person.status('not installed').click();
      await page.locator('.quick-input-list .monaco-list-row', { hasText: 'Choose Interpreter' }).waitFor();
      await person.shot('install-from-menu');
      await page.locator('.quick-input-list .monaco-list-row', { hasText: 'Install' }).click();
      await person.toast('Installing the rlm-lsp server').waitFor();
      await person.shot('installing');
      await person.hintsLike('after the installation', isCost, 300);
      await person.toast('is a prediction, not a measurement').waitFor();
      await person.shot('first-hints');
      await person.press('is a prediction, not a measurement', 'Learn More');
      await person.network().locator('body', { hasText: 'Predicted, not measured' }).waitFor();
      await person.shot('learn-more');
      await person.closeToasts();
      await person.command('View: Close All Editors');
      await person.open('functions.py');
    },
  ],
  [
    'hint and hover',
    async () => {
      await person.pointAt('def variance', 'variance');
      await page.locator('.monaco-hover', { hasText: 'peak memory' }).first().waitFor();
      await person.shot('hover');
      await page.keyboard.press('Escape');
    },
  ],
  [
    `an edit of the held-out suite (${edit.group}, ${edit.kind}) exceeds a budget, and is undone`,
    async () => {
      await person.open('orders.py');
      const before = await person.hintsLike('before the edit', isCost);
      if ((await person.squiggles().count()) !== 0) {
        throw new Error('there is a finding before the edit');
      }
      await person.shot('before');
      await page.locator('.view-line').first().click();
      await page.keyboard.press('Control+a');
      await person.paste(edit.after);
      await person.squiggles().first().waitFor();
      const after = await person.hintsLike('with the change against HEAD', (text) => text.includes('▲'));
      if (before === after) {
        throw new Error(`the hint is still ${before}`);
      }
      console.log(`    ${before} -> ${after}`);
      await person.shot('budget');
      await person.pointAt(`def ${edit.name}`, edit.name);
      await page.locator('.monaco-hover', { hasText: edit.budget }).first().waitFor();
      await person.shot('budget-hover');
      await page.keyboard.press('Escape');
      await person.command('File: Revert File');
      await until('no finding after undoing', async () => (await person.squiggles().count()) === 0);
      await person.hintsLike('after undoing', (text) => text === before);
    },
  ],
  [
    'compare with HEAD: what has changed, and the diff',
    async () => {
      await person.open('orders.py');
      await page.locator('.view-line').first().click();
      await page.keyboard.press('Control+a');
      await person.paste(edit.after);
      await person.hintsLike('with the change against HEAD', (text) => text.includes('▲'));
      await person.command('rlm-lsp: Compare File with HEAD');
      await page.locator('.quick-input-list .monaco-list-row', { hasText: 'latency about' }).first().waitFor();
      await page.locator('.monaco-diff-editor .line-insert').first().waitFor();
      await person.shot('compare');
      await page.keyboard.press('Enter');
      await page.locator('.quick-input-widget').waitFor({ state: 'hidden' });
      await person.shot('compare-diff');
      await person.command('View: Revert and Close Editor');
      await person.open('orders.py');
      await until('no finding after undoing', async () => (await person.squiggles().count()) === 0);
    },
  ],
  [
    'the command that measures a package is copied, and typed into a terminal when asked',
    async () => {
      await person.open('toolbox/counts.py');
      await person.hintsLike('in a package', isCost);
      await person.command('rlm-lsp: Measure Functions');
      await person.toast('is copied').waitFor();
      await person.shot('measure');
      const copied = await page.evaluate(() => navigator.clipboard.readText());
      if (!copied.endsWith(' measure tests --package toolbox')) {
        throw new Error(`copied was ${copied}`);
      }
      await person.press('is copied', 'Paste in Terminal');
      await page.locator('.terminal-wrapper.active').waitFor();
      await person.command('Terminal: Kill the Active Terminal Instance');
      await person.command('View: Close All Editors');
    },
  ],
  [
    'the server is killed and comes back',
    async () => {
      const [server] = processes(home, 'rlm_lsp serve');
      process.kill(server, 'SIGKILL');
      await until('another server', () => processes(home, 'rlm_lsp serve').some((one) => one !== server));
      await person.open('functions.py');
      await person.hintsLike('of the new server', isCost);
    },
  ],
  [
    'where the model says nothing the status says why',
    async () => {
      await person.open('kernel.ttir');
      await person.status('no prediction here').waitFor();
      // What is shown stays as it is while the pointer rests.
      await until('the reason in the status', async () => {
        await page.mouse.move(600, 300);
        await person.status('no prediction here').hover();
        const told = page.locator('.monaco-hover', { hasText: 'no prediction here' });
        return told.waitFor({ timeout: 3000 }).then(() => true);
      });
      await person.shot('no-prediction');
      await page.keyboard.press('Escape');
    },
  ],
  [
    'the menu of the status item: hide and show hints, settings',
    async () => {
      await person.open('functions.py');
      await person.hintsLike('before they are hidden', isCost);
      await person.status('ready').click();
      await page.locator('.quick-input-list .monaco-list-row', { hasText: 'Logs' }).waitFor();
      await person.shot('menu');
      await page.locator('.quick-input-list .monaco-list-row', { hasText: 'Hide Hints in This File' }).click();
      await until('no hints', async () => !isCost(await person.hints()));
      await person.choose('ready', 'Show Hints in This File');
      await person.hintsLike('after they are shown', isCost);
      await person.choose('ready', 'Settings');
      await page.locator('.settings-editor .settings-toc-entry', { hasText: 'Budgets and Changes' }).first().waitFor();
      await page.locator('.settings-editor .setting-item-bool', { hasText: 'Show inlay hints' }).waitFor();
      await person.shot('settings');
      const links = page.locator('.settings-editor .edit-in-settings-button:visible', { hasText: 'Edit in settings' });
      if ((await links.count()) > 0) {
        throw new Error('a setting has no field in the settings editor');
      }
      // It covers everything else.
      await page.keyboard.press('Escape');
      await page.locator('.settings-editor').waitFor({ state: 'hidden' });
    },
  ],
  [
    'a notebook: hints and a hover in its cells',
    async () => {
      await person.open('analysis.ipynb');
      await until('hints in both cells', async () => (await person.hints()).match(/\d (ns|µs|ms)/g)?.length > 1);
      await person.pointAt('def count_pairs', 'count_pairs');
      await page.locator('.monaco-hover', { hasText: 'peak memory' }).first().waitFor();
      await person.shot('notebook');
      await page.keyboard.press('Escape');
      await person.command('View: Close All Editors');
    },
  ],
  [
    'predict a file, explain a prediction',
    async () => {
      await person.open('functions.py');
      await person.command('rlm-lsp: Predict File');
      await page.locator('.quick-input-list .monaco-list-row', { hasText: 'variance' }).first().waitFor();
      await person.shot('predict-file');
      await page.locator('.quick-input-list .monaco-list-row', { hasText: 'variance' }).first().click();
      await page.locator('.statusbar', { hasText: 'Ln 19' }).waitFor();
      await person.command('rlm-lsp: Explain Prediction');
      await person
        .network()
        .locator('body', { hasText: 'the ratio of the prediction with and without the statement' })
        .waitFor();
      await person.shot('explanation');
      await person.command('View: Close All Editors');
    },
  ],
  [
    'a network, and those of its folder',
    async () => {
      await person.open('networks/resnet-like.onnx');
      await person.network().locator('h1', { hasText: 'resnet-like' }).waitFor();
      await person.network().locator('.point.current').waitFor();
      await person.shot('network');
      await toPlot();
      await person.shot('networks');
      const told = () => person.network().locator('.point.current').getAttribute('aria-label');
      const onPhone = await told();
      await person.network().locator('#device').selectOption('raspberry-pi-4');
      await until('latencies on the other device', async () => (await told()) !== onPhone);
      const other = person.network().locator('.point', { hasText: 'balanced: ' });
      await other.focus();
      await page.keyboard.press('Enter');
      await page.locator('.tab.active', { hasText: 'balanced.onnx' }).waitFor();
      await person.network().locator('h1', { hasText: 'balanced' }).waitFor();
    },
  ],
  [
    'the same in a light theme and in high contrast',
    async () => {
      for (const [theme, name] of [
        ['Light Modern', 'light'],
        ['Default High Contrast', 'high-contrast'],
      ]) {
        person.set({ 'workbench.colorTheme': theme });
        await until(`the theme ${theme}`, () =>
          page.locator(`.monaco-workbench.${name === 'light' ? 'vs' : 'hc-black'}`).count(),
        );
        await toPlot();
        await person.shot(`networks-${name}`);
      }
      person.set({ 'workbench.colorTheme': 'Dark Modern' });
    },
  ],
  [
    'the overview',
    async () => {
      await person.command('View: Close All Editors');
      await page.locator('.activitybar .action-label[aria-label*="Predicted Cost"]').click();
      const row = (text) => page.locator('.pane-body .monaco-list-row', { hasText: text });
      await row('solution.py').first().waitFor();
      await person.shot('overview');
      await person.command('rlm-lsp: Filter by File');
      await person.page.locator('.quick-input-widget input').fill('functions.py');
      await page.keyboard.press('Enter');
      await until(
        'only that file',
        async () => (await row('solution.py').count()) === 0 && (await row(' · ').count()) > 3,
      );
      await row('fingerprint').click();
      await page.locator('.tab.active', { hasText: 'functions.py' }).waitFor();
      await person.hintsLike('next to the overview', isCost);
      await person.shot('overview-filtered');
      person.set({ 'workbench.colorTheme': 'Light Modern' });
      await page.locator('.monaco-workbench.vs').waitFor();
      await person.shot('overview-light');
      await person.pointAt('def fingerprint', 'fingerprint');
      await page.locator('.monaco-hover', { hasText: 'peak memory' }).first().waitFor();
      await person.shot('hover-light');
    },
  ],
];

try {
  for (const [name, take] of steps) {
    if (only === undefined || new RegExp(only).test(name)) {
      person.step(name);
      await take();
    }
  }
} catch (error) {
  await person.shot('failed');
  console.error(error);
  process.exitCode = 1;
} finally {
  await person.leave();
}
