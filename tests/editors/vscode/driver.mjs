/** Starts the real VS Code (code-server) and a browser that shows it; what both tests need. */

import { spawn } from 'node:child_process';
import { mkdirSync, openSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const here = path.dirname(fileURLToPath(import.meta.url));
export const checkout = path.resolve(here, '..', '..', '..');
export const extension = path.join(checkout, 'vscode-extension');
export const { chromium } = createRequire(path.join(extension, 'package.json'))('playwright-core');

const cache =
  process.env.EDITORS_CACHE ??
  path.join(process.env.XDG_CACHE_HOME ?? path.join(process.env.HOME, '.cache'), 'rlm-lsp-editors');
const codeServer = path.join(cache, 'code-server', 'node_modules', 'code-server');
const node = path.join(cache, 'node24', 'bin', 'node');

/** A free port. */
export function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer();
    server.once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** Wait until `what` gives something; fails, saying so, after a while. */
export async function until(said, what, seconds = 120) {
  const end = Date.now() + seconds * 1000;
  let last;
  while (Date.now() < end) {
    try {
      const found = await what();
      if (found) {
        return found;
      }
    } catch (error) {
      last = error;
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`waited ${seconds} s for ${said}${last ? `: ${last.message}` : ''}`);
}

/** Nothing of the person who runs the tests: folders and settings of our own, and a PATH without their rlm-lsp. */
export function environment(home) {
  const kept = process.env.PATH.split(path.delimiter).filter((folder) => !folder.includes('venv'));
  const found = { ...process.env, PATH: kept.join(path.delimiter) };
  for (const name of ['VIRTUAL_ENV', 'PYTHONPATH', 'PYTHONHOME', 'CI']) {
    delete found[name];
  }
  for (const name of ['CONFIG', 'STATE', 'DATA']) {
    found[`XDG_${name}_HOME`] = path.join(home, name.toLowerCase());
  }
  return found;
}

const running = new Set();

/** End a process with its file watchers and extension hosts, which are in its group. */
function end(pid) {
  running.delete(pid);
  try {
    process.kill(-pid, 'SIGKILL');
  } catch {
    // It has ended.
  }
}

// Whatever ends the tests, nothing that they have started stays.
process.once('exit', () => running.forEach(end));
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) {
  process.once(signal, () => process.exit(130));
}

function start(args, env, log) {
  mkdirSync(path.dirname(log), { recursive: true });
  const out = openSync(log, 'a');
  const child = spawn(node, args, { env, detached: true, stdio: ['ignore', out, out] });
  running.add(child.pid);
  return { stop: () => end(child.pid) };
}

async function answers(url) {
  await until(`${url}`, async () => (await fetch(url)).status < 500, 60);
}

/** Settings of the person, and of the machine: those that choose programs are taken from there. */
function writeSettings(user, settings) {
  for (const place of ['User', 'Machine']) {
    mkdirSync(path.join(user, place), { recursive: true });
    writeFileSync(path.join(user, place, 'settings.json'), JSON.stringify(settings, null, 2));
  }
}

/**
 * VS Code as a person sees it; before it is started, `change` (arguments) installs an extension or uninstalls it. With
 * `trust`, folders are to be trusted first.
 */
export async function openForPerson(home, folder, settings, change, changed = {}, trust = false) {
  const port = await freePort();
  const user = path.join(home, 'user');
  const config = path.join(home, 'code-server.yaml');
  mkdirSync(user, { recursive: true });
  writeFileSync(config, `bind-addr: 127.0.0.1:${port}\nauth: none\ncert: false\n`);
  writeSettings(user, settings);
  const env = { ...environment(home), ...changed };
  const common = [
    codeServer,
    '--config',
    config,
    '--user-data-dir',
    user,
    '--extensions-dir',
    path.join(home, 'extensions'),
  ];
  const first = spawn(node, [...common, ...change], { env, stdio: 'inherit' });
  await new Promise((resolve, reject) =>
    first.once('exit', (code) => (code === 0 ? resolve() : reject(new Error(`${change.join(' ')} failed (${code})`)))),
  );
  const quiet = [
    '--disable-telemetry',
    '--disable-update-check',
    '--disable-getting-started-override',
    ...(trust ? [] : ['--disable-workspace-trust']),
  ];
  const server = start([...common, ...quiet, folder], env, path.join(home, 'code-server.log'));
  const url = `http://127.0.0.1:${port}/?folder=${encodeURIComponent(folder)}`;
  await answers(url);
  return { url, set: (changed) => writeSettings(user, changed), stop: server.stop };
}

/** VS Code with a test module in its extension host, on a workspace file; the extension is the checkout's. */
export async function openForTests(home, workspace, settings, tests) {
  const port = await freePort();
  const user = path.join(home, 'user');
  writeSettings(user, settings);
  const args = [
    path.join(codeServer, 'lib', 'vscode', 'out', 'server-main.js'),
    ...['--host', '127.0.0.1', '--port', String(port), '--without-connection-token', '--accept-server-license-terms'],
    ...['--enable-smoke-test-driver', '--telemetry-level', 'off', '--server-data-dir', path.join(home, 'server')],
    ...['--user-data-dir', user, '--extensions-dir', path.join(home, 'extensions')],
  ];
  const server = start(args, environment(home), path.join(home, 'server.log'));
  const remote = (file) => `vscode-remote://127.0.0.1:${port}${file}`;
  const payload = JSON.stringify([
    ['extensionDevelopmentPath', remote(extension)],
    ['extensionTestsPath', remote(tests)],
    ['skipWelcome', 'true'],
  ]);
  const opened = `workspace=${encodeURIComponent(workspace)}`;
  const url = `http://127.0.0.1:${port}/?${opened}&payload=${encodeURIComponent(payload)}`;
  await answers(`http://127.0.0.1:${port}/version`);
  return { url, stop: server.stop };
}

export function browser() {
  return chromium.launch({
    executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
    args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-background-networking', '--disable-component-update'],
  });
}
