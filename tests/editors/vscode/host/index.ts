/** Runs the tests in VS Code's extension host and writes the results to a file next to itself: one line per test. */

import { appendFileSync, writeFileSync } from 'node:fs';
import * as path from 'node:path';

import Mocha from 'mocha';

const REPORT = path.join(__dirname, 'report.txt');

export async function run(): Promise<void> {
  const mocha = new Mocha({ ui: 'bdd', timeout: 180_000, reporter: 'dot', color: false, grep: process.env.HOST_TESTS });
  // The functions that tests are written with are there from now on.
  mocha.suite.emit('pre-require', globalThis, '', mocha);
  await import('./features.test.js');
  await import('./notebooks.test.js');
  await import('./mcp.test.js');
  await import('./quantities.test.js');
  await import('./status.test.js');
  await import('./settings.test.js');
  await import('./commands.test.js');
  await import('./faults.test.js');
  writeFileSync(REPORT, '');
  return new Promise((resolve, reject) => {
    const runner = mocha.run((failures) =>
      failures === 0 ? resolve() : reject(new Error(`${failures} tests failed`)),
    );
    runner.on('pass', (test) => appendFileSync(REPORT, `passed  ${test.fullTitle()} (${test.duration ?? 0} ms)\n`));
    runner.on('fail', (test, error: Error) =>
      appendFileSync(REPORT, `FAILED  ${test.fullTitle()}\n${error.stack ?? error.message}\n`),
    );
  });
}
