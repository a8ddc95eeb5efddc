/**
 * A converted full model behind a model server: VS Code shows its numbers, and whether they are calibrated. Runs after
 * `journey.mjs`, which installs the server. `node full_model.mjs VSIX WORKSPACE SCREENSHOTS` exits with 1 at the first failure;
 * `PYTHON` has the extras that the model needs, and with a fourth argument is also the interpreter of the language server.
 */

import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';

import { checkout } from './driver.mjs';
import { Person } from './person.mjs';

const [vsix, workspace, screenshots] = process.argv.slice(2, 5).map((name) => path.resolve(name));
const isAlone = process.argv.length > 5;
const python = process.env.PYTHON ?? 'python3';
const home = path.join(workspace, 'home');
const folder = path.join(workspace, 'programs-of-a-judge');
const NAMES = ['uncalibrated', 'calibrated'];
const FILES = ['total.py', 'other.py'];
const HINTS = [/^\? \d+ MiB \(\d+–\d+ MiB\)$/, /^\d+–\d+ MiB$/];
const PROGRAM = `# rlm: program
import sys

n = int(sys.stdin.readline())
values = list(map(int, sys.stdin.readline().split()))
print(sum(sorted(values)[:n]))
`;

/** Serve the model until stdin of the server is closed: as it was published, and calibrated. */
async function serve() {
  const server = spawn(python, ['-m', 'tests.full_models', mkdtempSync(path.join(workspace, 'full-model-'))], {
    cwd: checkout,
    env: { ...process.env, PYTHONPATH: ['', 'model_core', 'server'].map((name) => path.join(checkout, name)).join(':') },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  for await (const line of createInterface({ input: server.stdout })) {
    return { server, models: JSON.parse(line) };
  }
  throw new Error('the full model is not served');
}

mkdirSync(folder, { recursive: true });
// The page of a hover's details stays as it was first read, so each model has a file.
for (const name of FILES) {
  writeFileSync(path.join(folder, name), PROGRAM);
}
const { server, models } = await serve();
// With a code lens, a program has no hint.
const settings = { 'rlm-lsp.codeLens': false, 'rlm-lsp.model': models[0][1] };
if (isAlone) {
  settings['rlm-lsp.interpreter'] = [path.resolve(python)];
}
const person = await Person.at({ home, folder, vsix, screenshots, settings });
const { page } = person;
try {
  for (const [index, [id, address]] of models.entries()) {
    const name = NAMES[index];
    person.step(`${name}: the hint and the hover have a number of ${id}`);
    person.set({ 'rlm-lsp.model': address });
    await person.open(FILES[index]);
    const hint = await person.hintsLike(`of the ${name} model`, (text) => HINTS[index].test(text.trim()));
    console.log(`    ${hint}`);
    await person.pointAt('import sys', 'import');
    const hover = page.locator('.monaco-hover', { hasText: 'peak memory' }).first();
    await hover.waitFor();
    await person.shot(`full-model-${name}`);
    await hover.locator('a', { hasText: 'Details' }).first().click();
    const details = person.network().locator('body', { hasText: `predicted by model ${id}` });
    await details.waitFor();
    await person.shot(`full-model-${name}-details`);
    if ((await details.innerText()).includes('uncalibrated') !== (index === 0)) {
      throw new Error(`the details say ${await details.innerText()}`);
    }
    await person.command('View: Close All Editors');
  }
} catch (error) {
  await person.shot('full-model-failed');
  throw error;
} finally {
  await person.leave();
  server.stdin.end();
}
