/**
 * What a person sees when something is wrong: no Python, one too old, no server, a broken one, an old one, one that stops
 * at once, no model. Each says what to do, and its button does it. Runs after `journey.mjs`, which installs the server.
 * `node failures.mjs VSIX WORKSPACE SCREENSHOTS` exits with 1 at the first thing that is not as it should be.
 */

import { chmodSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { Person } from './person.mjs';

const [vsix, workspace, screenshots] = process.argv.slice(2, 5).map((name) => path.resolve(name));
const folder = path.join(workspace, 'shop');
const programs = path.join(workspace, 'programs');
const isCost = (text) => /\d (ns|µs|ms)/.test(text);
const restarted = () => ({ 'rlm-lsp.path': undefined, 'rlm-lsp.importStrategy': undefined });

/** A program of a few lines of shell in the place of a server or a Python. */
function program(name, ...lines) {
  const file = path.join(programs, name);
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, ['#!/bin/sh', ...lines, ''].join('\n'));
  chmodSync(file, 0o755);
  return file;
}

/** Wait until the settings editor shows a setting of rlm-lsp, then close it, because it covers everything else. */
async function settingsShow(person, name) {
  await person.page.locator('.settings-editor', { hasText: `Rlm-lsp: ${name}` }).waitFor();
  await person.page.keyboard.press('Escape');
  await person.page.locator('.settings-editor').waitFor({ state: 'hidden' });
}

async function servers() {
  const person = await Person.at({ home: path.join(workspace, 'home'), folder, vsix, screenshots });
  try {
    await person.open('functions.py');
    await person.hintsLike('of the installed server', isCost);

    person.step('the setting names no program');
    person.set({ 'rlm-lsp.path': ['/nowhere/rlm-lsp'] });
    await person.toast('which is not a program').waitFor();
    await person.shot('wrong-path');
    await person.press('which is not a program', 'Open Settings');
    await settingsShow(person, 'Path');

    person.step('the server does not start');
    const broken = program('broken', "echo 'ImportError: libonnx.so: cannot open' >&2", 'exit 1');
    person.set({ 'rlm-lsp.path': [broken] });
    await person.toast('does not start: ImportError').waitFor();
    await person.shot('broken-server');
    await person.press('does not start: ImportError', 'Use Bundled Server');
    await person.open('functions.py');
    await person.hintsLike('of the bundled server', isCost);

    person.step('the server is too old');
    person.set({ ...restarted(), 'rlm-lsp.path': [program('old', "echo 'rlm-lsp 0.0.1'")] });
    await person.toast('rlm-lsp 0.0.1').waitFor();
    await person.shot('old-server');

    person.step('the server stops as soon as it is started');
    const stops = ['[ "$1" = --version ] && echo "rlm-lsp 9.0.0" && exit 0', 'echo "out of memory" >&2', 'exit 3'];
    person.set({ 'rlm-lsp.path': [program('stops', ...stops)] });
    await person.toast('does not start: out of memory').waitFor();
    await person.shot('stopped-server');
    await person.press('does not start: out of memory', 'Show Log');
    await person.page.locator('.output-view').waitFor();
    await person.closeToasts();

    person.step('settings of the user and of the project are not valid');
    person.set({ ...restarted(), 'rlm-lsp.label': 'bands' });
    await person.toast('"label" must be one of').waitFor();
    await person.shot('invalid-setting');
    await person.press('"label" must be one of', 'Open Settings');
    await settingsShow(person, 'Label');
    person.set({ 'rlm-lsp.label': undefined, 'rlm-lsp.importStrategy': 'bundled' });
    await person.toast('"importStrategy" must be one of').waitFor();
    await person.shot('invalid-extension-setting');
    await person.press('"importStrategy" must be one of', 'Open Settings');
    await settingsShow(person, 'Import Strategy');
    person.set(restarted());
    const project = path.join(folder, 'rlm-lsp.toml');
    writeFileSync(project, 'label = "median"\nthreads = -1\n');
    await person.toast('"threads" must be an integer').waitFor();
    await person.shot('invalid-file');
    await person.press('"threads" must be an integer', 'Open rlm-lsp.toml');
    await person.page.locator('.tab.active', { hasText: 'rlm-lsp.toml' }).waitFor();
    await person.page.locator('.statusbar', { hasText: 'Ln 2' }).waitFor();
    rmSync(project);
    await person.closeToasts();

    person.step('a model is chosen that is not there');
    person.set(restarted());
    await person.open('functions.py');
    await person.hintsLike('before another model is chosen', isCost);
    person.set({ 'rlm-lsp.model': '/nowhere/model' });
    await person.toast('the model is unchanged').waitFor();
    await person.shot('wrong-model');
    await person.press('the model is unchanged', 'Open Settings');
    await settingsShow(person, 'Model');
    person.set({ 'rlm-lsp.model': undefined });
    await person.closeToasts();

    person.step('there is no model from the start');
    const own = path.join(workspace, 'home', 'config', 'rlm-lsp', 'config.toml');
    mkdirSync(path.dirname(own), { recursive: true });
    writeFileSync(own, 'model = "/nowhere/model"\n');
    await person.command('Predicted Cost: Restart Server');
    await person.toast('no predictions').waitFor();
    await person.shot('no-model');
    await person.press('no predictions', 'Open Settings');
    await settingsShow(person, 'Model');
    rmSync(own);
    await person.command('Predicted Cost: Restart Server');
    await person.open('functions.py');
    await person.hintsLike('once the model is there again', isCost);
  } catch (error) {
    await person.shot('failed');
    throw error;
  } finally {
    await person.leave();
  }
}

/** The offer to install the server, in a home folder that has none. Each way begins; `journey.mjs` installs it. */
async function offers() {
  const home = path.join(workspace, 'home-without-server');
  const installed = path.join(home, 'user', 'User', 'globalStorage', 'rlm-lsp.rlm-lsp', 'server');
  const person = await Person.at({ home, folder, vsix, screenshots });
  const cancelled = async () => {
    await person.toast('Installing the rlm-lsp server').waitFor();
    await person.press('Installing the rlm-lsp server', 'Cancel');
    await person.toast('was not installed: was cancelled').waitFor();
    if (existsSync(installed) && readdirSync(installed).length > 0) {
      throw new Error(`${installed} has what is left of an installation that was cancelled`);
    }
  };
  try {
    person.step('the notification is used, and the installation cancelled');
    await person.open('functions.py');
    await person.press('not installed yet', 'Install');
    await cancelled();

    person.step('the notification is dismissed, and the menu of the status used');
    await person.dismiss('was not installed');
    await person.choose('problem', 'Try Again');
    await cancelled();
    await person.closeToasts();

    person.step('the notification is dismissed, and the view used');
    await person.command('Predicted Cost: Restart Server');
    await person.dismiss('not installed yet');
    await person.page.locator('.activitybar .action-label[aria-label*="Predicted Cost"]').click();
    const welcome = person.page.locator('.welcome-view', { hasText: 'not installed yet' });
    await welcome.locator('.monaco-button', { hasText: 'Choose Interpreter' }).waitFor();
    await person.shot('install-from-view');
    await welcome.locator('.monaco-button', { hasText: 'Install Server' }).click();
    await cancelled();
  } catch (error) {
    await person.shot('failed');
    throw error;
  } finally {
    await person.leave();
  }
}

async function pythons() {
  program('path/python3', 'echo 3.9.18');
  const home = path.join(workspace, 'home-without-python');
  // VS Code takes the PATH that a login shell has.
  const env = { HOME: home, SHELL: '/bin/sh' };
  mkdirSync(home, { recursive: true });
  writeFileSync(path.join(home, '.profile'), `PATH='${path.join(programs, 'path')}'; export PATH\n`);
  const person = await Person.at({ home, folder, vsix, screenshots, env });
  try {
    person.step('Python is too old');
    await person.open('functions.py');
    await person.toast('is 3.9.18').waitFor();
    await person.shot('old-python');
    await person.closeToasts();

    person.step('there is no Python');
    rmSync(path.join(programs, 'path', 'python3'));
    await person.command('Predicted Cost: Restart Server');
    await person.toast('no Python was found').waitFor();
    await person.shot('no-python');
    await person.page.locator('.activitybar .action-label[aria-label*="Predicted Cost"]').click();
    await person.page.locator('.welcome-view', { hasText: 'not running' }).waitFor();
  } catch (error) {
    await person.shot('failed');
    throw error;
  } finally {
    await person.leave();
  }
}

await servers();
await offers();
await pythons();
