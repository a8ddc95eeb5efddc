/**
 * Keeps what VS Code, with our extension, says of itself in `initialize`: `node record_vscode.mjs VSIX PYTHON FILE`, where
 * PYTHON is an interpreter that has what rlm-lsp needs. See record_capabilities.py.
 */

import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { checkout, until } from './vscode/driver.mjs';
import { Person } from './vscode/person.mjs';

const [vsix, python, file] = process.argv.slice(2).map((name) => path.resolve(name));
const home = mkdtempSync(path.join(tmpdir(), 'rlm-lsp-record-'));
const [server, folder, recorded] = ['rlm-lsp', 'project', 'initialize.json'].map((name) => path.join(home, name));
mkdirSync(folder);
writeFileSync(path.join(folder, 'work.py'), 'def small(n):\n    return n + 1\n');
const recorder = path.join(checkout, 'tests', 'editors', 'record_capabilities.py');
const modules = ['model_core', 'server'].map((name) => path.join(checkout, name)).join(path.delimiter);
writeFileSync(server, `#!/bin/sh\nPYTHONPATH=${modules} exec ${python} ${recorder} ${recorded} "$@"\n`);
chmodSync(server, 0o755);
// A setting of the machine on which the extension runs, not of the browser that shows it.
mkdirSync(path.join(home, 'user', 'Machine'), { recursive: true });
writeFileSync(path.join(home, 'user', 'Machine', 'settings.json'), JSON.stringify({ 'rlm-lsp.path': [server] }));
try {
  const person = await Person.at({ home, folder, vsix, screenshots: path.join(home, 'shots'), env: { CI: 'true' } });
  try {
    await person.open('work.py');
    await until('the server to be started', () => existsSync(recorded));
    await person.hintsLike('of the recorded server', (text) => /\d (ns|µs|ms)/.test(text));
  } finally {
    await person.leave();
  }
  copyFileSync(recorded, file);
} finally {
  rmSync(home, { recursive: true, force: true, maxRetries: 5 });
}
