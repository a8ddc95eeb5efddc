/** A server that is killed, missing, broken or too old: what the extension makes of it, and that it recovers. */

import * as assert from 'node:assert/strict';
import * as vscode from 'vscode';

import type { Problem } from '../../../../vscode-extension/src/common/problems';
import { extension, isRunning, open, program, set, someHints, until } from './tools';

async function problemWith(path: string): Promise<Problem> {
  const { session } = await extension();
  await set('path', [path]);
  return until(`a problem with ${path}`, () => (session.state.kind === 'failed' ? session.problem : undefined));
}

describe('faults', () => {
  afterEach(async () => {
    const api = await extension();
    await set('path', undefined);
    await isRunning(api);
    await someHints(await open('functions.py'));
  });

  it('starts a killed server again, but not for ever', async () => {
    const { session } = await extension();
    await isRunning(await extension());
    for (let times = 0; times < 3; times++) {
      const before = session.processId;
      assert.ok(before !== undefined);
      process.kill(before, 'SIGKILL');
      await until('another process', () => session.state.kind === 'running' && session.processId !== before);
      await someHints(await open('functions.py'));
    }
    assert.ok(session.processId !== undefined);
    process.kill(session.processId, 'SIGKILL');
    const problem = await until('the end of it', () => (session.state.kind === 'failed' ? session.problem : undefined));
    assert.equal(problem.kind, 'crashed');
    await vscode.commands.executeCommand('rlm-lsp.restart');
  });

  it('says that a server is missing', async () => {
    assert.deepEqual(await problemWith('/nowhere/rlm-lsp'), { kind: 'path-missing', path: '/nowhere/rlm-lsp' });
    const { status } = await extension();
    assert.deepEqual([status.said.words, status.said.kind], ['problem', 'error']);
    assert.match(status.said.detail, /rlm-lsp\.path/);
  });

  it('says that a server does not start, with its last words', async () => {
    const problem = await problemWith(program('echo "ImportError: no libonnx" >&2', 'exit 1'));
    assert.ok(problem.kind === 'broken');
    assert.equal(problem.reason, 'ImportError: no libonnx');
  });

  it('says that a server stops as soon as it is started', async () => {
    const file = program(
      '[ "$1" = --version ] && echo "rlm-lsp 9.0.0" && exit 0',
      'echo "out of memory" >&2',
      'exit 3',
    );
    const problem = await problemWith(file);
    assert.ok(problem.kind === 'broken');
    assert.equal(problem.reason, 'out of memory');
  });

  it('says that a server is too old', async () => {
    const problem = await problemWith(program('echo "rlm-lsp 0.0.9"'));
    assert.ok(problem.kind === 'old-server');
    assert.equal(problem.version, '0.0.9');
  });
});
