/** A Jupyter notebook: hints and hovers in its cells, as VS Code asks an extension for them. */

import * as assert from 'node:assert/strict';
import * as vscode from 'vscode';

import { extension, hints, hoverOn, isRunning, replace, someHints, until } from './tools';

/** Open the notebook of the workspace; its cells of Python. */
async function cells(): Promise<vscode.TextDocument[]> {
  const [folder] = vscode.workspace.workspaceFolders ?? [];
  assert.ok(folder);
  const notebook = await vscode.workspace.openNotebookDocument(vscode.Uri.joinPath(folder.uri, 'analysis.ipynb'));
  await vscode.window.showNotebookDocument(notebook);
  return notebook
    .getCells()
    .filter(({ kind }) => kind === vscode.NotebookCellKind.Code)
    .map(({ document }) => document);
}

describe('notebooks', () => {
  before(async () => {
    await isRunning(await extension());
  });

  after(async () => {
    await vscode.commands.executeCommand('workbench.action.revertAndCloseActiveEditor');
  });

  it('shows hints behind the signatures of each cell, and a hover on them', async () => {
    const [first, second] = await cells();
    assert.ok(first && second);
    for (const [cell, name] of [
      [first, 'pairs'],
      [second, 'count_pairs'],
    ] as const) {
      assert.equal(cell.languageId, 'python');
      assert.match((await someHints(cell)).join(' '), /\d (ns|µs|ms)/);
      assert.match(await hoverOn(cell, `def ${name}`), /peak memory/);
    }
  });

  it('predicts an edited cell again', async () => {
    const [first] = await cells();
    assert.ok(first);
    const [before] = await someHints(first);
    await replace(first, first.getText().replace('in values if', 'in values * 1000 if'));
    await until('another hint', async () => {
      const [now] = await hints(first);
      return now !== undefined && now !== before;
    });
  });
});
