/** The places of rows of the overview in their files and notebooks. */

import * as vscode from 'vscode';

import { Row } from '../common/protocol';

export async function goTo(row: Row): Promise<void> {
  const uri = vscode.Uri.parse(row.uri);
  if (row.basis === 'network') {
    await vscode.commands.executeCommand('vscode.open', uri);
    return;
  }
  const at = new vscode.Position(row.line, row.character);
  const cell = await cellOf(row);
  if (cell !== undefined) {
    // Opened by its cell, its tab would have the name of the cell.
    await vscode.window.showNotebookDocument(cell.notebook);
  }
  const document = cell?.document ?? (await vscode.workspace.openTextDocument(uri));
  await vscode.window.showTextDocument(document, { selection: new vscode.Range(at, at) });
}

/** The cell of a row of a notebook, which is opened for it. */
async function cellOf(row: Row): Promise<vscode.NotebookCell | undefined> {
  if (typeof row.cell !== 'number' && typeof row.cellUri !== 'string') {
    return undefined;
  }
  const notebook = await vscode.workspace.openNotebookDocument(vscode.Uri.parse(row.uri));
  const cells = notebook.getCells();
  return openCell(row) ?? cells.find(({ index }) => index + 1 === row.cell) ?? cells[0];
}

/** The cell of a row of a notebook that was open when the row was made, if it still is. */
function openCell({ uri, cellUri }: Row): vscode.NotebookCell | undefined {
  const notebook = vscode.workspace.notebookDocuments.find((document) => document.uri.toString() === uri);
  return notebook?.getCells().find(({ document }) => document.uri.toString() === cellUri);
}

/** The number of the cell of a row, from 1; null outside notebooks. */
export function cellNumber(row: Row): number | null {
  const cell = openCell(row);
  return cell !== undefined ? cell.index + 1 : (row.cell ?? null);
}
