/**
 * Runs the tests of `host/` in the extension host of the real VS Code. Needs a Python that has the server.
 * `node host.mjs PYTHON WORKSPACE` exits with the status of the tests.
 */

import { appendFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';

import { browser, extension, here, openForTests } from './driver.mjs';
import { SETTINGS } from './person.mjs';

const [python, workspace] = process.argv.slice(2, 4).map((name) => path.resolve(name));
const home = path.join(workspace, 'home-of-tests');
const log = path.join(home, 'console.log');
const MOST_MS = 15 * 60_000;

const tests = path.join(extension, 'build', 'host', 'index.js');
const esbuild = createRequire(path.join(extension, 'package.json'))('esbuild');
await esbuild.build({
  entryPoints: [path.join(here, 'host', 'index.ts')],
  outfile: tests,
  bundle: true,
  platform: 'node',
  format: 'cjs',
  // Mocha finds its parts by their paths; it is loaded from the extension's development dependencies.
  external: ['vscode', 'mocha'],
  logLevel: 'error',
});

const report = path.join(path.dirname(tests), 'report.txt');
mkdirSync(home, { recursive: true });
writeFileSync(report, '');
const settings = { ...SETTINGS, 'security.workspace.trust.enabled': false, 'rlm-lsp.interpreter': [python] };
const code = await openForTests(home, path.join(workspace, 'shop.code-workspace'), settings, tests);
const shown = await browser();
try {
  const page = await shown.newPage();
  const ended = new Promise((resolve) => {
    void page.exposeFunction('codeAutomationLog', (kind, args) =>
      appendFileSync(log, `${kind} ${JSON.stringify(args)}\n`),
    );
    void page.exposeFunction('codeAutomationExit', (status) => resolve(status));
    setTimeout(() => resolve('the tests did not end in time'), MOST_MS).unref();
  });
  await page.goto(code.url, { waitUntil: 'commit', timeout: 120_000 });
  const status = await ended;
  console.log(readFileSync(report, 'utf8').trimEnd());
  if (status !== 0) {
    console.log(`==> failed: ${status}; the console is in ${log}`);
    process.exitCode = 1;
  }
} finally {
  await shown.close();
  code.stop();
}
