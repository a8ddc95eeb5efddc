/** The commands of the palette. */

import * as assert from 'node:assert/strict';
import * as vscode from 'vscode';

import { extension, hints, isRunning, open, set, someHints, until } from './tools';

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

  it('copies the predictions that a code action names', async () => {
    const document = await open('functions.py');
    await someHints(document);
    const line = document
      .getText()
      .split('\n')
      .findIndex((text) => text.includes('def variance'));
    await vscode.env.clipboard.writeText('');
    await vscode.commands.executeCommand('rlm-lsp.copyJson', document.uri.toString(), { line, character: 4 });
    const rows = JSON.parse(await vscode.env.clipboard.readText()) as { qualname: string }[];
    assert.ok(rows.length > 0 && rows.every(({ qualname }) => qualname === 'variance'));
  });

  it('types a comparison with HEAD into a terminal', async () => {
    await open('functions.py');
    const before = vscode.window.terminals.length;
    await vscode.commands.executeCommand('rlm-lsp.compareWithHead');
    await until('a terminal', () => vscode.window.terminals.length > before);
    vscode.window.terminals.forEach((terminal) => terminal.dispose());
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
