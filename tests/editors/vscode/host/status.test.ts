/** The status bar item and the log: the state in words, and what is running. */

import * as assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import * as vscode from 'vscode';

import { extension, hints, isRunning, open, replace, someHints, until } from './tools';

/** Open a file with so many functions until all have hints or enough has been seen, and close it. */
async function predict(length: number, isEnough: () => boolean): Promise<void> {
  const functions = Array.from(
    { length },
    (_, number) => `def f${number}(n):\n    return [sorted(range(n + ${number})) for i in range(${number})]\n`,
  );
  const document = await vscode.workspace.openTextDocument({ language: 'python', content: functions.join('\n\n') });
  await vscode.window.showTextDocument(document);
  // The editor asks for the hints of the screen alone, and the server predicts what it is asked for.
  await until('the hints', async () => (await hints(document)).length >= length || isEnough());
  await replace(document, '');
  await vscode.commands.executeCommand('workbench.action.revertAndCloseActiveEditor');
}

describe('status', () => {
  before(async () => {
    await isRunning(await extension());
  });

  it('says that the server is ready, with its model and the device', async () => {
    const { status } = await extension();
    const document = await open('functions.py');
    await someHints(document);
    await until('the model', () => /^Model rlm-/.test(status.said.detail));
    assert.deepEqual([status.said.words, status.said.kind], ['ready', 'fine']);
  });

  it('says how much of a large file is predicted', async () => {
    const { session, status } = await extension();
    const said = new Set<string>();
    const listener = session.onDidChangeWorks(() => said.add(status.said.words));
    const counted = (): string[] => [...said].filter((words) => /^predicting \d+ of \d+$/.test(words));
    // How many reports fit into the time of the predictions depends on the machine: a fast one gets a larger file, and a
    // slow one does not have to be done with it.
    for (const length of [400, 1600, 6400]) {
      if (counted().length < 2) {
        await predict(length, () => counted().length > 1);
        await until('the end of the predictions', () => session.works.length === 0 && status.said.words === 'ready');
      }
    }
    assert.ok(counted().length > 1, [...said].join(', '));
    listener.dispose();
    assert.ok(
      [...said].every((words) => /^(predicting.*|ready|loading the model)$/.test(words)),
      [...said].join(', '),
    );
  });

  it('logs versions, model and start times, and no error on a restart', async () => {
    const { session, log } = await extension();
    await someHints(await open('functions.py'));
    const length = readFileSync(log.fsPath, 'utf8').length;
    const logged = (): string => readFileSync(log.fsPath, 'utf8').slice(length);
    const before = session.processId;
    await vscode.commands.executeCommand('rlm-lsp.restart');
    await until('another process', () => session.state.kind === 'running' && session.processId !== before);
    await someHints(await open('functions.py'));
    const wanted =
      /extension \d+\.\d+\.\d+, server \d+\.\d+\S* \(interpreter\), model rlm-\S+; started in \d+\.\d s, model loaded after \d+\.\d s/;
    await until('the line about what is running', () => wanted.test(logged()));
    assert.doesNotMatch(logged(), /\[(error|warning)\]/);
  });
});
