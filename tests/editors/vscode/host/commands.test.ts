/** The commands of the palette. */

import * as assert from 'node:assert/strict';
import * as vscode from 'vscode';

import { runnable } from '../../../../vscode-extension/src/common/measure';
import type { Change, Changes } from '../../../../vscode-extension/src/common/protocol';
import { extension, hints, isRunning, lineOf, open, replace, set, someHints, until } from './tools';

const EXPLANATION = vscode.Uri.from({
  scheme: 'rlm-lsp-text',
  path: '/Explanation.md',
});

/** The page with the explanation. */
async function explanationPage(): Promise<vscode.TextDocument> {
  return vscode.workspace.openTextDocument(EXPLANATION);
}

/** The texts that the page with the explanation has from now on. */
function explanations(): () => readonly string[] {
  const texts: string[] = [];
  const note = (document: vscode.TextDocument): void => {
    if (document.uri.toString() === EXPLANATION.toString()) {
      texts.push(document.getText());
    }
  };
  vscode.workspace.onDidOpenTextDocument(note);
  vscode.workspace.onDidChangeTextDocument(({ document }) => note(document));
  return () => texts;
}

describe('commands', () => {
  before(async () => {
    await isRunning(await extension());
  });

  it('has a command for each that the manifest names', async () => {
    const manifest = vscode.extensions.getExtension('rlm-lsp.rlm-lsp')?.packageJSON as {
      contributes: { commands: { command: string }[] };
    };
    const known = new Set(await vscode.commands.getCommands());
    const missing = manifest.contributes.commands.filter(({ command }) => !known.has(command));
    assert.deepEqual(missing, []);
  });

  it('restarts the server', async () => {
    const api = await extension();
    const before = api.session.processId;
    await vscode.commands.executeCommand('rlm-lsp.restart');
    await until('another process', () => api.session.state.kind === 'running' && api.session.processId !== before);
    await someHints(await open('functions.py'));
  });

  it('hides the hints of a file and shows them again', async () => {
    const document = await open('functions.py');
    await someHints(document);
    await vscode.commands.executeCommand('rlm-lsp.toggleHintsInFile');
    assert.deepEqual(await hints(document), []);
    await vscode.commands.executeCommand('rlm-lsp.toggleHintsInFile');
    assert.ok((await hints(document)).length > 0);
  });

  it('shows the hints of all functions, and again only those that matter', async () => {
    const document = await open('functions.py');
    const all = (await someHints(document)).length;
    await set('hintsShown', 'relevant');
    await until('only hints that matter', async () => (await hints(document)).length < all);
    await vscode.commands.executeCommand('rlm-lsp.toggleAllHints');
    await until('the hints of all functions', async () => (await hints(document)).length === all);
    await vscode.commands.executeCommand('rlm-lsp.toggleAllHints');
    await until('again only hints that matter', async () => (await hints(document)).length < all);
    await set('hintsShown', 'all');
    await someHints(document);
  });

  it('copies the predictions that a code action names', async () => {
    const document = await open('functions.py');
    await someHints(document);
    const line = lineOf(document, 'def variance');
    await vscode.env.clipboard.writeText('');
    await vscode.commands.executeCommand('rlm-lsp.copyJson', document.uri.toString(), { line, character: 4 });
    const rows = JSON.parse(await vscode.env.clipboard.readText()) as { qualname: string }[];
    assert.ok(rows.length > 0 && rows.every(({ qualname }) => qualname === 'variance'));
  });

  it('explains a prediction on a page that opens at once, and says that it is out of date after an edit', async () => {
    const document = await open('functions.py');
    await someHints(document);
    const texts = explanations();
    const line = lineOf(document, 'def variance');
    await vscode.commands.executeCommand('rlm-lsp.explain', document.uri.toString(), { line, character: 4 });
    const page = await explanationPage();
    await until('the explanation', () => page.getText().includes('with and without the statement'));
    assert.match(texts()[0] ?? '', new RegExp(`^Computing .* line ${line + 1} of functions.py`));
    await replace(document, `${document.getText()}\n`);
    await until('that it is out of date', () => page.getText().startsWith('> Out of date'));
    await vscode.window.showTextDocument(document);
    await vscode.commands.executeCommand('workbench.action.files.revert');
  });

  it('says on the page why there is no explanation', async () => {
    const document = await open('functions.py');
    await vscode.commands.executeCommand('rlm-lsp.explain', document.uri.toString(), { line: 0, character: 0 });
    const page = await explanationPage();
    await until('the reason', () => /^There is no explanation: there is no unit at line 1/.test(page.getText()));
  });

  it('says on the page that an explanation was cancelled', async () => {
    const { session } = await extension();
    const statements = Array.from({ length: 300 }, (_, number) => `    n += sum(range(${number}, n))\n`).join('');
    const document = await vscode.workspace.openTextDocument({
      language: 'python',
      content: `def long(n):\n${statements}    return n\n`,
    });
    await vscode.window.showTextDocument(document);
    const done = vscode.commands.executeCommand('rlm-lsp.explainPrediction');
    const work = await until('the work', () => session.works.find(({ title }) => title.startsWith('explaining')));
    session.cancel(work);
    await done;
    const page = await explanationPage();
    await until('that it was cancelled', () => page.getText().startsWith('Cancelled.'));
    await vscode.window.showTextDocument(document);
    await vscode.commands.executeCommand('workbench.action.revertAndCloseActiveEditor');
  });

  it('compares a file with HEAD: the change of each function, and a diff', async () => {
    const { session } = await extension();
    const document = await open('functions.py');
    const client = await session.running();
    assert.ok(client);
    const line = lineOf(document, 'def variance');
    const changes = async (): Promise<readonly Change[]> =>
      (await client.sendRequest<Changes>('rlm-lsp/changes', { uri: document.uri.toString() })).changes;
    assert.deepEqual(await changes(), []);
    const text = document.getText();
    await replace(
      document,
      text.replace('    center = mean(values)', '    center = mean(sorted(values * len(values)))'),
    );
    // Its callers have changed too, by less.
    const [change] = await changes();
    assert.deepEqual([change?.qualname, change?.line, change?.neutral], ['variance', line, false]);
    assert.equal(change?.text, 'growth of peak memory from 1 to n^2 in `values`');
    let ended = false;
    void vscode.commands.executeCommand('rlm-lsp.compareWithHead').then(() => {
      ended = true;
    });
    await until('an entry to be picked', async () => {
      await vscode.commands.executeCommand('workbench.action.acceptSelectedQuickOpenItem');
      return ended;
    });
    assert.ok(vscode.window.tabGroups.activeTabGroup.activeTab?.input instanceof vscode.TabInputTextDiff);
    assert.equal(vscode.window.activeTextEditor?.selection.active.line, line);
    await vscode.commands.executeCommand('workbench.action.closeActiveEditor');
    await open('functions.py');
    await vscode.commands.executeCommand('workbench.action.files.revert');
  });

  it('copies the command that measures a package, and runs nothing', async () => {
    const document = await open('toolbox/counts.py');
    await someHints(document);
    const { session } = await extension();
    assert.ok(session.state.kind === 'running');
    const { command: python } = session.state.server;
    const [folder] = vscode.workspace.workspaceFolders ?? [];
    const wanted = `cd ${folder?.uri.fsPath} && ${python} -P -m rlm_lsp measure tests --package toolbox`;
    const terminals = vscode.window.terminals.length;
    for (const ask of [
      () => vscode.commands.executeCommand('rlm-lsp.measureCommand', document.uri.toString()),
      () => vscode.commands.executeCommand('rlm-lsp.measureFunction'),
    ]) {
      await vscode.env.clipboard.writeText('');
      const done = ask();
      await until('the command', async () => (await vscode.env.clipboard.readText()) === wanted);
      await vscode.commands.executeCommand('notifications.clearAll');
      await done;
    }
    assert.equal(vscode.window.terminals.length, terminals);
  });

  it('names the program in the command, not in the folder', () => {
    const server = { command: '/venv/bin/rlm-lsp', args: [], from: 'path' } as const;
    const proposed = "cd '/a && rlm-lsp b' && rlm-lsp measure tests --package x";
    const call = process.platform === 'win32' ? '& ' : '';
    const wanted = `cd '/a && rlm-lsp b' && ${call}/venv/bin/rlm-lsp measure tests --package x`;
    assert.equal(runnable(proposed, server), wanted);
  });

  it('reports versions and settings without secrets', async () => {
    await set('tokenFile', '/home/somebody/secret-token');
    await vscode.commands.executeCommand('rlm-lsp.report');
    const uri = vscode.Uri.from({ scheme: 'rlm-lsp-text', path: '/Report.md' });
    const text = (await vscode.workspace.openTextDocument(uri)).getText();
    assert.match(text, /extension 0\.1\.0/);
    assert.match(text, /server \d+\.\d+/);
    assert.match(text, /rlm-lsp doctor[^]*onnxruntime/);
    assert.match(text, /"tokenFile": "\(set\)"/);
    assert.doesNotMatch(text, /secret-token/);
    await set('tokenFile', undefined);
  });

  it('opens the model card', async () => {
    await vscode.commands.executeCommand('rlm-lsp.openModelCard');
    await until('the card', () => vscode.window.tabGroups.activeTabGroup.activeTab?.label.includes('MODEL_CARD'));
  });
});
