/**
 * A folder that is not trusted: its settings choose no program and no model until the user trusts it. Runs after
 * `journey.mjs`, which installs the server. `node trust.mjs VSIX WORKSPACE SCREENSHOTS` exits with 1 at the first thing that
 * is not as it should be.
 */

import { chmodSync, copyFileSync, existsSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { until } from './driver.mjs';
import { Person, processes } from './person.mjs';

const [vsix, workspace, screenshots] = process.argv.slice(2, 5).map((name) => path.resolve(name));
const home = path.join(workspace, 'home');
const folder = path.join(workspace, 'download');
const ran = path.join(workspace, 'the-program-of-the-folder-ran');
const isCost = (text) => /\d (ns|µs|ms)/.test(text);

mkdirSync(path.join(folder, '.vscode'), { recursive: true });
copyFileSync(path.join(workspace, 'shop', 'functions.py'), path.join(folder, 'functions.py'));
const program = path.join(folder, 'server');
writeFileSync(program, `#!/bin/sh\ntouch '${ran}'\necho 'this folder is not what it seems' >&2\nexit 1\n`);
chmodSync(program, 0o755);
const chosen = { 'rlm-lsp.path': [program], 'rlm-lsp.interpreter': [program], 'rlm-lsp.model': '/nowhere/model' };
writeFileSync(path.join(folder, '.vscode', 'settings.json'), JSON.stringify(chosen));

const person = await Person.at({ home, folder, vsix, screenshots, trust: true });
const { page } = person;
try {
  person.step('a folder that is not trusted gets predictions, and none of its programs runs');
  await page.locator('.statusbar-item', { hasText: 'Restricted Mode' }).waitFor();
  await person.open('functions.py');
  await person.hintsLike('in a folder that is not trusted', isCost);
  await person.shot('untrusted');
  const [server] = processes(home, 'rlm_lsp serve');
  await person.command('Predicted Cost: Restart Server');
  await until('another server', () => processes(home, 'rlm_lsp serve').some((one) => one !== server));
  if (existsSync(ran)) {
    throw new Error('a program that the settings of the folder name was run');
  }

  person.step('once it is trusted, its settings count');
  await person.command('Workspaces: Manage Workspace Trust');
  await page.locator('.workspace-trust-editor .monaco-button', { hasText: 'Trust' }).first().click();
  await until('the program of the folder to be run', () => existsSync(ran));
  await person.toast('this folder is not what it seems').waitFor();
} catch (error) {
  await person.shot('failed');
  throw error;
} finally {
  await person.leave();
}
