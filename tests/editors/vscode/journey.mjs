/**
 * A user's journey through the extension in the real VS Code: install, the first file, hint, hover, an edit that makes a function more
 * expensive, a budget that is exceeded and met again, a killed server, a language without predictions, networks, the
 * overview.
 * `node journey.mjs VSIX WORKSPACE SCREENSHOTS` exits with 1 at the first failure.
 */

import { existsSync, globSync, readFileSync, rmSync } from 'node:fs';
import path from 'node:path';

import { until } from './driver.mjs';
import { Person, processes } from './person.mjs';

const [vsix, workspace, screenshots] = process.argv.slice(2, 5).map((name) => path.resolve(name));
// For work on one step, in a home folder in which the first has been taken.
const only = process.argv[5];
const edit = JSON.parse(readFileSync(path.join(workspace, 'edit.json'), 'utf8'));
const home = path.join(workspace, 'home');
// Until the message about an ordinary file has shown all hints, as after an installation.
const settings = only === undefined || /ordinary/.test(only) ? { 'rlm-lsp.hintsShown': 'relevant' } : {};
const person = await Person.at({ home, folder: path.join(workspace, 'shop'), vsix, screenshots, settings });
const { page } = person;
const toHead = (name, hasText) =>
  person
    .network()
    .locator(name, { hasText })
    .first()
    .evaluate((title) => title.scrollIntoView());
const toPlot = () => toHead('h2', 'Models in');
const THEMES = [
  ['Dark Modern', 'vs-dark', ''],
  ['Light Modern', 'vs', '-light'],
  ['Default High Contrast', 'hc-black', '-high-contrast'],
];
/** A picture in a dark and in a light theme and in high contrast, each after `show`; dark again at the end. */
const inThemes = async (show, name) => {
  for (const [theme, base, suffix] of [...THEMES, THEMES[0]]) {
    person.set({ 'workbench.colorTheme': theme });
    await until(`the theme ${theme}`, () => page.locator(`.monaco-workbench.${base}`).count());
    await show();
    await person.shot(`${name}${suffix}`);
  }
};
const isCost = (text) => /\d (ns|µs|ms)/.test(text);

const steps = [
  [
    'first run: the server is installed after asking, from the menu because the notification was dismissed',
    async () => {
      await person.open('people.py');
      await person.toast('not installed yet').waitFor({ timeout: 60_000 });
      await person.shot('install');
      await person.dismiss('not installed yet');
      await person.status('not installed').click();
      await page.locator('.quick-input-list .monaco-list-row', { hasText: 'Choose Interpreter' }).waitFor();
      await person.shot('install-from-menu');
      await page.locator('.quick-input-list .monaco-list-row', { hasText: 'Install' }).click();
      await person.toast('Installing the rlm-lsp server').waitFor();
      await person.shot('installing');
      await person.status('ready').waitFor({ timeout: 300_000 });
      // Compiling what the server does not import would double the time.
      const [library] = globSync(
        path.join(home, 'user/User/globalStorage/rlm-lsp.rlm-lsp/server/*/lib/*/site-packages/onnx'),
      );
      if (existsSync(path.join(library, '__pycache__'))) {
        throw new Error('the installation compiled a library that the server has not imported');
      }
    },
  ],
  [
    'an ordinary file has no hint, and one message says so, with a button that shows all hints',
    async () => {
      await person.open('people.py');
      await person.toast('rlm-lsp is ready. Nothing expensive here').waitFor();
      // The details of the status, where the menu was opened, would cover the button.
      await page.locator('.view-line').first().click();
      await page.locator('.monaco-hover', { hasText: 'rlm-lsp: ready' }).waitFor({ state: 'hidden' });
      await person.shot('ready');
      if (isCost(await person.hints())) {
        throw new Error('an ordinary file has a hint');
      }
      await person.press('rlm-lsp is ready', 'Show All Hints');
      await person.hintsLike('of all functions', isCost);
      await person.shot('all-hints');
      // The message is shown once per installation.
      await person.closeToasts();
      person.set({ 'rlm-lsp.hintsShown': 'all' });
    },
  ],
  [
    'the first hint comes with what it means',
    async () => {
      rmSync(path.join(home, 'state', 'rlm-lsp', 'notice-1'), { force: true });
      await person.command('Predicted Cost: Restart Server');
      await person.open('functions.py');
      await person.hintsLike('of the new server', isCost);
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
    'rows of a table that are read one at a time: the hover with a cheaper rewrite in each theme, and the way to the line',
    async () => {
      await person.open('tests/totals.py');
      await person.hintsLike('of the loop', isCost);
      const told = page.locator('.monaco-hover', { hasText: 'itertuples' }).first();
      await inThemes(async () => {
        await page.keyboard.press('Escape');
        await told.waitFor({ state: 'hidden' });
        await person.pointAt('def total', 'total');
        await told.waitFor();
        await person.scrollTo(told, 'itertuples');
      }, 'cheaper-rewrite');
      await page.keyboard.press('Escape');
      await page.locator('.view-line', { hasText: 'def total' }).locator('span', { hasText: 'total' }).last().click();
      await page.keyboard.press('Control+.');
      const way = page.locator('.action-widget .monaco-list-row', { hasText: 'takes much of the time' });
      await way.waitFor();
      await way.click();
      await page.locator('.statusbar', { hasText: 'Ln 8' }).waitFor();
    },
  ],
  [
    'sizes: hints at them, the table of a hover, the plot in its details in both themes, a budget at a size',
    async () => {
      await person.open('sizes.py');
      await person.hintsLike('at sizes', (text) => text.includes('at items 10k') && text.includes('at steps 50k'));
      await person.squiggles().first().waitFor();
      await person.pointAt('def equal_pairs', 'equal_pairs');
      await page.locator('.monaco-hover td', { hasText: '100k' }).first().waitFor();
      await person.shot('sizes-hover');
      await page.locator('.monaco-hover a', { hasText: 'Details' }).first().click();
      await person.network().locator('body', { hasText: 'sizes: items=10k from a comment' }).waitFor();
      await page.mouse.move(600, 20);
      await page.locator('.monaco-hover', { hasText: 'peak memory' }).first().waitFor({ state: 'hidden' });
      const plot = person.network().locator('svg.plot').first();
      await plot.locator('polyline').first().waitFor({ state: 'attached' });
      await plot.evaluate((drawn) => drawn.scrollIntoView({ block: 'center' }));
      await person.shot('sizes-details-dark');
      person.set({ 'workbench.colorTheme': 'Light Modern' });
      await page.locator('.monaco-workbench.vs').waitFor();
      await person.shot('sizes-details-light');
      person.set({ 'workbench.colorTheme': 'Dark Modern' });
      await page.locator('.monaco-workbench.vs-dark').waitFor();
      await person.command('View: Close All Editors');
      await person.open('sizes.py');
      await person.pointAt('def simulate', 'simulate');
      await page.locator('.monaco-hover', { hasText: 'from 2 calls, 1k–50k' }).first().waitFor();
      await person.shot('sizes-from-calls');
      await page.keyboard.press('Escape');
      await person.command('View: Close All Editors');
    },
  ],
  [
    'ordinary code: a set that becomes a list, and a table that exceeds its budget',
    async () => {
      await person.open('checkout.py');
      await person.hintsLike('of a function that waits', (text) => text.includes('waits ≤10 s + network'));
      // It downloads a page at a time, which is the only finding.
      await until('the wait in a loop', async () => (await person.squiggles().count()) === 1);
      await page.locator('.view-line').first().click();
      await page.keyboard.press('Control+a');
      await person.paste(edit.checkout);
      await person.hintsLike('with the growth', (text) => text.includes('→'));
      await until('another finding', async () => (await person.squiggles().count()) > 1);
      await page.keyboard.press('Control+Home');
      await person.shot('checkout');
      await person.pointAt('def unpaid', 'unpaid');
      await page.locator('.monaco-hover', { hasText: 'payments' }).first().waitFor();
      await person.shot('checkout-hover');
      await page.keyboard.press('Escape');
      await person.command('Predicted Cost: Compare File with HEAD');
      await page.locator('.quick-input-list .monaco-list-row', { hasText: 'unpaid' }).first().waitFor();
      await page.locator('.monaco-diff-editor .line-insert').first().waitFor();
      await person.shot('checkout-compare');
      await page.keyboard.press('Escape');
      await person.command('View: Revert and Close Editor');
      await person.open('checkout.py');
      await until('the first finding after undoing', async () => (await person.squiggles().count()) === 1);
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
      const after = await person.hintsLike('after the edit', (text) => isCost(text) && text !== before);
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
      await person.open('report.py');
      await page.locator('.view-line').first().click();
      await page.keyboard.press('Control+a');
      await person.paste(edit.report);
      await person.hintsLike('with the change against HEAD', (text) => text.includes('▲'));
      await person.command('Predicted Cost: Compare File with HEAD');
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
      await person.command('Predicted Cost: Measure Functions');
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
      await person.command('Predicted Cost: Predict File');
      await page.locator('.quick-input-list .monaco-list-row', { hasText: 'variance' }).first().waitFor();
      await person.shot('predict-file');
      await page.locator('.quick-input-list .monaco-list-row', { hasText: 'variance' }).first().click();
      await page.locator('.statusbar', { hasText: 'Ln 19' }).waitFor();
      await person.command('Predicted Cost: Explain Prediction');
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
      await person.network().locator('table.operators tbody tr').first().waitFor();
      await person.network().locator('.point.current').waitFor();
      await person.shot('network');
      const operators = () => person.network().locator('table.operators').innerText();
      const onFirst = await operators();
      const device = person.network().locator('#operators-device');
      await device.selectOption({ index: 2 });
      await until('the operators on another device', async () => (await operators()) !== onFirst);
      await person.network().locator('#size-batch').fill('32');
      await person.network().locator('#size-batch').press('Enter');
      await person.network().locator('td.number', { hasText: /^32$/ }).first().waitFor();
      await person.shot('network-batch');
      await person.network().locator('#size-batch').fill('');
      await person.network().locator('#size-batch').press('Enter');
      await until(
        'no batch of 32',
        async () => (await person.network().locator('td.number', { hasText: /^32$/ }).count()) === 0,
      );
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
    'two networks next to each other, in each theme',
    async () => {
      await person.command('Predicted Cost: Compare Two ONNX Models');
      await page.locator('.quick-input-list .monaco-list-row', { hasText: 'light.onnx' }).first().click();
      await page.locator('.tab.active', { hasText: 'balanced.onnx ↔ light.onnx' }).waitFor();
      await person.network().locator('table.operators').nth(1).waitFor();
      const ratios = await person
        .network()
        .locator('td.number', { hasText: /^[\d.]+× \(.+×\)$/ })
        .allInnerTexts();
      if (ratios.length < 5) {
        throw new Error(`ratios are ${ratios.join(', ')}`);
      }
      await inThemes(() => undefined, 'network-pair');
      await page.locator('.tab', { hasText: 'balanced.onnx', hasNotText: '↔' }).click();
      await person.network().locator('.point.current').waitFor();
    },
  ],
  [
    'a network and those of its folder in each theme',
    async () => {
      await inThemes(() => toHead('h1', 'balanced'), 'network');
      await inThemes(() => toHead('h2', 'Most expensive'), 'network-operators');
      await inThemes(toPlot, 'networks');
    },
  ],
  [
    'the overview',
    async () => {
      await person.command('View: Close All Editors');
      await page.locator('.activitybar .action-label[aria-label*="Predicted Cost"]').click();
      const row = (text) => page.locator('.pane-body .monaco-list-row', { hasText: text });
      await row('Calls').first().waitFor();
      await row('analysis.ipynb').first().waitFor();
      const isRead = () => page.locator('.pane-body', { hasText: 'No prediction for' }).first().waitFor();
      await isRead();
      await person.shot('overview');
      await row('count_pairs').click();
      await page.locator('.tab.active', { hasText: 'analysis.ipynb' }).waitFor();
      await page.locator('.statusbar', { hasText: 'Cell 3 of 3' }).waitFor();
      await person.hintsLike('of the cell', isCost);
      await isRead();
      await person.shot('overview-notebook');
      await person.command('View: Close All Editors');
      await row('Calls').first().locator('.monaco-tl-twistie').click();
      await row('solution.py').first().waitFor();
      await person.shot('overview-groups');
      await row('Calls').first().locator('.monaco-tl-twistie').click();
      await person.open('people.py');
      await page.locator('.view-line', { hasText: 'def full_name' }).click();
      await page.keyboard.press('Control+a');
      // So expensive that its row is the first: rows that are not on the screen are not there.
      await person.paste('def squares(n):\n    return [i * i for i in range(10_000_000)]\n');
      await page.locator('.pane-body', { hasText: 'Out of date' }).first().waitFor();
      await person.shot('overview-out-of-date');
      await row('squares').waitFor();
      await page.locator('.pane-body', { hasText: 'are updated when you save' }).first().waitFor();
      await person.shot('overview-updated');
      await person.command('File: Revert File');
      await row('squares').waitFor({ state: 'hidden' });
      await person.command('Predicted Cost: Filter by File');
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
      await person.command('Predicted Cost: Clear Filters');
      await row('Calls').first().waitFor();
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
