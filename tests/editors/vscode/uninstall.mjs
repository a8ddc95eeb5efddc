/**
 * What is left on the disk by an update of the extension, and by uninstalling it. Runs after `journey.mjs`, which installs
 * the server, and as the last one. `node uninstall.mjs VSIX WORKSPACE SCREENSHOTS` exits with 1 at the first failure.
 */

import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { openForPerson, until } from './driver.mjs';
import { Person, SETTINGS } from './person.mjs';

const [vsix, workspace, screenshots] = process.argv.slice(2, 5).map((name) => path.resolve(name));
const NAME = 'rlm-lsp.rlm-lsp';
const NEWER = '9.0.0';
const home = path.join(workspace, 'home');
const folder = path.join(workspace, 'shop');
const extensions = path.join(home, 'extensions');
const server = path.join(home, 'user', 'User', 'globalStorage', NAME, 'server');
const isCost = (text) => /\d (ns|µs|ms)/.test(text);
const versions = () => readdirSync(extensions).filter((name) => name.startsWith(NAME));
const ran = (file) => readFileSync(file, 'utf8').includes('post uninstall script');

/** The vsix with another version, which VS Code takes for an update. */
function newer() {
  const file = path.join(workspace, 'newer.vsix');
  const copy = `
import re, sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as old, zipfile.ZipFile(sys.argv[2], "w", zipfile.ZIP_DEFLATED) as new:
    for name in old.namelist():
        data = old.read(name)
        if name == "extension/package.json":
            data = re.sub(rb'"version": "[^"]*"', b'"version": "${NEWER}"', data, count=1)
        if name == "extension.vsixmanifest":
            data = re.sub(rb'( Version)="[^"]*"( Publisher)', rb'\\1="${NEWER}"\\2', data, count=1)
        new.writestr(name, data)
`;
  execFileSync(process.env.PYTHON ?? 'python3', ['-c', copy, vsix, file]);
  return file;
}

/** The log of the VS Code that was started last. */
function log() {
  const logs = path.join(home, 'user', 'logs');
  return path.join(logs, readdirSync(logs).sort().at(-1), 'remoteagent.log');
}

console.log('==> an update keeps the environment, and the new version records it');
const [old] = versions();
const environments = readdirSync(server);
const person = await Person.at({ home, folder, vsix: newer(), screenshots });
try {
  await person.open('functions.py');
  await person.hintsLike('of the updated extension', isCost);
  await until('the old version to be deleted', () => !existsSync(path.join(extensions, old)));
} catch (error) {
  await person.shot('failed');
  throw error;
} finally {
  await person.leave();
}
const [updated, ...others] = versions();
const record = path.join(extensions, updated, 'environments.json');
const recorded = JSON.parse(readFileSync(record, 'utf8'));
const isKept = String(readdirSync(server)) === String(environments) && String(recorded) === server;
if (!isKept || !updated.includes(NEWER) || others.length > 0 || ran(log())) {
  throw new Error(`after the update to ${updated}, ${readdirSync(server)} is left and ${recorded} is recorded`);
}

console.log('==> uninstalling it removes the environment once VS Code is started again');
// VS Code itself clears the global storage of the data folder that it runs with, but no other.
const second = path.join(workspace, 'second', 'globalStorage', NAME, 'server');
mkdirSync(path.join(second, environments[0], 'lib'), { recursive: true });
writeFileSync(record, JSON.stringify([...recorded, second]));
const code = await openForPerson(home, folder, SETTINGS, ['--uninstall-extension', NAME]);
try {
  await until('the extension to be deleted', () => versions().length === 0);
  await until('the environments to be removed', () => !existsSync(server) && !existsSync(second));
  await until('the end of the script in the log', () => ran(log()));
} finally {
  code.stop();
}
console.log(readFileSync(log(), 'utf8').match(/.*post uninstall script.*/g).join('\n'));
