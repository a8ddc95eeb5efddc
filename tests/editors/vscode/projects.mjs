/**
 * A person's way through public projects in the real VS Code, from the first installation to a budget that is kept
 * again: hints, hover, details, explanation, the view Predicted Cost, a renamed variable, an edit that makes a function
 * expensive, a budget in `rlm-lsp.toml`, its finding, the comparison with HEAD, the fix. Pictures are made in a dark and in a
 * light theme, to be looked at. `node projects.mjs VSIX WORKSPACE SCREENSHOTS [PROJECT...]` exits with 1 at the first failure;
 * `projects.py` writes the workspace.
 */

import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';

import { until } from './driver.mjs';
import { Person } from './person.mjs';

const [vsix, workspace, screenshots] = process.argv.slice(2, 5).map((name) => path.resolve(name));
const only = process.argv.slice(5);
const THEMES = [
  ['dark', 'Dark Modern', '.monaco-workbench.vs-dark'],
  ['light', 'Light Modern', '.monaco-workbench.vs'],
];
const isCost = (text) => /\d (ns|µs|ms)/.test(text);

/**
 * A file and a function that has a hint, and a function that an edit makes expensive; the budget holds for all functions of
 * its file, so that those that call the function exceed it, too.
 */
const PROJECTS = [
  {
    name: 'httpx',
    shown: ['httpx/_main.py', 'print_response'],
    file: 'httpx/_urlparse.py',
    unit: 'percent_encoded',
    budget: 'latency < 1 ms',
    before: `    NON_ESCAPED_CHARS = UNRESERVED_CHARACTERS + safe
`,
    after: `    NON_ESCAPED_CHARS = UNRESERVED_CHARACTERS + safe
    escaped = {chr(code): PERCENT(chr(code)) for code in range(0xD800) if chr(code) not in NON_ESCAPED_CHARS}
    if escaped:
        return "".join(escaped.get(char, char) for char in string)
`,
  },
  {
    name: 'toolz',
    shown: ['toolz/_signatures.py', 'create_signature_registry'],
    file: 'toolz/itertoolz.py',
    unit: 'isdistinct',
    budget: 'memory < 1 MiB',
    before: `        seen = set()
        seen_add = seen.add
        for item in seq:
            if item in seen:
                return False
`,
    after: `        seen = set(range(1_000_003))
        seen_add = seen.add
        for item in seq:
            if item in seen:
                return False
`,
  },
  {
    name: 'rich',
    shown: ['rich/progress.py', 'track'],
    file: 'rich/control.py',
    unit: 'strip_control_codes',
    budget: 'latency < 1 ms',
    before: `    return text.translate(_translate_table)
`,
    after: `    table = {code: None for code in range(0x110000) if not chr(code).isprintable()}
    return text.translate(table)
`,
  },
  {
    name: 'petl',
    shown: ['petl/io/xlsx.py', 'toxlsx'],
    file: 'petl/util/counting.py',
    unit: 'stringpatterncounter',
    budget: 'latency < 10 ms',
    before: `    trans = maketrans(
        'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789',
        'AAAAAAAAAAAAAAAAAAAAAAAAAAaaaaaaaaaaaaaaaaaaaaaaaaaa9999999999'
    )
`,
    after: `    trans = {}
    for code in range(0x110000):
        char = chr(code)
        if char.isupper():
            trans[code] = 'A'
        elif char.isalpha():
            trans[code] = 'a'
        elif char.isdigit():
            trans[code] = '9'
`,
    rename: [/\btrans\b/g, 'translation'],
    // `stringpatterns` calls it.
    findings: 2,
  },
  {
    name: 'agate',
    shown: ['agate/table/to_csv.py', 'to_csv'],
    file: 'agate/utils.py',
    unit: 'letter_name',
    budget: 'memory < 1 MiB',
    rename: [/\bletters\b/g, 'alphabet'],
    before: `    return letters[index % count] * ((index // count) + 1)
`,
    after: `    names = [letters[i % count] * ((i // count) + 1) for i in range(16_384)]

    return names[index]
`,
  },
];

/** Make a picture in each theme of what `show` shows. */
async function pictures(person, name, show = () => undefined) {
  for (const [kind, theme, workbench] of THEMES) {
    person.set({ 'workbench.colorTheme': theme });
    await person.page.locator(workbench).waitFor();
    await show();
    await person.shot(`${name}-${kind}`);
    if (show.length === 0) {
      await person.page.keyboard.press('Escape');
    }
  }
}

async function goTo(person, file, unit) {
  const line = readFileSync(path.join(person.folder, file), 'utf8')
    .split('\n')
    .findIndex((one) => new RegExp(`def ${unit}\\b`).test(one));
  await person.quickly('Control+p', `${file}:${line + 1}:8`, path.basename(file));
  await person.page.locator('.statusbar', { hasText: `Ln ${line + 1}` }).waitFor();
}

async function hover(person, unit, text) {
  await until(`a hover of ${unit} with ${text}`, async () => {
    await person.page.mouse.move(700, 690);
    await person.pointAt(`def ${unit}`, unit);
    await person.page.locator('.monaco-hover', { hasText: text }).first().waitFor({ timeout: 5000 });
    return true;
  });
}

async function replaceAll(person, text) {
  await person.page.locator('.monaco-editor.focused').waitFor();
  await person.page.keyboard.press('Control+a');
  await person.paste(text);
}

async function visit({ name, shown, file, unit, budget, before, after, rename, findings = 1 }) {
  const folder = path.join(workspace, name);
  const settings = { 'rlm-lsp.hintsShown': undefined };
  const home = path.join(workspace, 'home');
  const isInstalled = existsSync(path.join(home, 'user', 'User', 'globalStorage', 'rlm-lsp.rlm-lsp', 'server'));
  const person = await Person.at({ home, folder, vsix, screenshots, settings });
  person.folder = folder;
  const { page } = person;
  const text = readFileSync(path.join(folder, file), 'utf8');
  const slow = text.replace(before, after);
  const started = Date.now();
  try {
    if (slow === text) {
      throw new Error(`${file} of ${name} has another text`);
    }
    person.step(`${name}: the first hints`);
    await person.open(shown[0]);
    if (!isInstalled) {
      await person.toast('not installed yet').waitFor();
      await person.shot(`${name}-install-dark`);
      await person.press('not installed yet', 'Install');
      await person.status('ready').waitFor({ timeout: 300_000 });
      console.log(`    installed after ${Math.round((Date.now() - started) / 1000)} s`);
    }
    await person.status('ready').waitFor();
    await goTo(person, ...shown);
    console.log(`    ${await person.hintsLike('of an expensive function', isCost)}`);
    await pictures(person, `${name}-file`);
    await goTo(person, file, unit);

    person.step(`${name}: hover, details, explanation`);
    await pictures(person, `${name}-hover`, () => hover(person, unit, 'About 80 %'));
    await hover(person, unit, 'About 80 %');
    await page.locator('.monaco-hover a', { hasText: 'Details' }).first().click();
    await person.network().locator('body', { hasText: 'bands checked on' }).waitFor();
    await pictures(person, `${name}-details`);
    await person.command('View: Close All Editors');
    await goTo(person, file, unit);
    await person.command('Predicted Cost: Explain Prediction');
    await person.network().locator('body', { hasText: 'with and without the statement' }).waitFor();
    await pictures(person, `${name}-explanation`);
    await person.command('View: Close All Editors');

    person.step(`${name}: the view Predicted Cost`);
    await page.locator('.activitybar .action-label[aria-label*="Predicted Cost"]').click();
    const opened = Date.now();
    await page.locator('.pane-body .monaco-list-row', { hasText: ' · ' }).first().waitFor();
    console.log(`    first row after ${Date.now() - opened} ms`);
    await page.locator('.action-label[aria-label^="Refresh"]').first().waitFor({ timeout: 300_000 });
    console.log(`    whole workspace read after ${Date.now() - opened} ms`);
    await pictures(person, `${name}-overview`);
    await page.locator('.activitybar .action-label[aria-label*="Explorer"]').first().click();

    if (rename !== undefined) {
      person.step(`${name}: a local variable of ${unit} is renamed`);
      await goTo(person, file, unit);
      await replaceAll(person, text.replace(...rename));
      await goTo(person, file, unit);
      const same = await person.hintsLike('with the mark of what costs the same', (words) => /≈/.test(words));
      if (/[▲▼]/.test(same)) {
        throw new Error(`renaming changed a cost: ${same}`);
      }
      await pictures(person, `${name}-renamed`);
    }

    person.step(`${name}: an edit makes ${unit} expensive`);
    await goTo(person, file, unit);
    const cheap = await person.hints();
    await replaceAll(person, slow);
    await page.keyboard.press('Control+s');
    await goTo(person, file, unit);
    // Its text leaves the cost of its inputs open, so that the cost has no mark against HEAD.
    console.log(`    ${await person.hintsLike('of the new cost', (words) => isCost(words) && words !== cheap)}`);
    if ((await person.squiggles().count()) !== 0) {
      throw new Error('there is a finding before there is a budget');
    }
    await pictures(person, `${name}-edit`);
    await person.command('Predicted Cost: Compare File with HEAD');
    await person.toast('No predicted change since HEAD').waitFor();
    await pictures(person, `${name}-compare`, (_) => undefined);
    await person.dismiss('No predicted change since HEAD');
    await person.command('View: Close All Editors');

    person.step(`${name}: a budget in rlm-lsp.toml`);
    await person.open('rlm-lsp.toml');
    await replaceAll(person, `[budgets]\n"${file}" = "${budget}"\n`);
    await page.keyboard.press('Control+s');
    await person.shot(`${name}-settings-dark`);
    await goTo(person, file, unit);
    await person.squiggles().first().waitFor();
    await pictures(person, `${name}-finding`, () => hover(person, unit, 'budget'));
    await person.command('Problems: Focus on Problems View');
    await page.locator('.markers-panel .monaco-list-row', { hasText: 'budget' }).first().waitFor();
    await pictures(person, `${name}-problems`);
    const problems = await page
      .locator('.markers-panel .monaco-list-row', { hasText: 'is predicted to exceed' })
      .count();
    if (problems !== findings) {
      throw new Error(`${problems} findings instead of ${findings}`);
    }
    await person.command('View: Toggle Panel Visibility');

    person.step(`${name}: the fix`);
    await goTo(person, file, unit);
    await replaceAll(person, text);
    await page.keyboard.press('Control+s');
    await goTo(person, file, unit);
    await until('no finding', async () => (await person.squiggles().count()) === 0);
    await pictures(person, `${name}-fixed`, () => hover(person, unit, 'likely to exceed'));
  } catch (error) {
    await person.shot(`${name}-failed`);
    throw error;
  } finally {
    await person.leave();
  }
}

for (const project of PROJECTS.filter(({ name }) => only.length === 0 || only.includes(name))) {
  await visit(project);
}
