/** "Compare with HEAD": the diff of a file, and the functions that the server predicts to cost more or less. */

import * as path from 'path';
import * as vscode from 'vscode';
import { LanguageClient } from 'vscode-languageclient/node';

import { openSettings } from './settings';

const GIT_EXTENSION = 'vscode.git';
/** The server compares with HEAD in the background and shows the result in its hovers. */
const MOST_MS = 10_000;
const PAUSE_MS = 100;

/** What we use of the API of VS Code's Git extension. */
interface GitApi {
  getRepository(uri: vscode.Uri): { show(ref: string, file: string): Promise<string> } | null;
  toGitUri(uri: vscode.Uri, ref: string): vscode.Uri;
}

/** A unit of the file, and where its signature is. */
export interface Place {
  readonly name: string;
  readonly line: number;
}

/** A unit compared with HEAD: `unchanged`, `new`, or by how much its costs have grown or fallen. */
export interface Compared extends Place {
  readonly change: string;
}

export async function compareWithHead(
  client: LanguageClient,
  document: vscode.TextDocument,
  places: readonly Place[],
): Promise<void> {
  const name = path.basename(document.uri.fsPath);
  const before = await atHead(document.uri);
  if (before === 'absent') {
    void vscode.window.showInformationMessage(`${name} is not in HEAD, so there is nothing to compare it with.`);
    return;
  }
  const compared = await vscode.window.withProgress(
    { location: vscode.ProgressLocation.Window, title: 'rlm-lsp: comparing with HEAD' },
    () => againstHead(client, document.uri, places),
  );
  if (compared === undefined) {
    const pressed = await vscode.window.showInformationMessage(
      `${name} cannot be compared: it is not in a git repository, is new in it, or the setting "changes" is off.`,
      'Open Settings',
    );
    if (pressed !== undefined) {
      openSettings('changes');
    }
    return;
  }
  const changed = compared.filter(({ change }) => change !== 'unchanged');
  if (changed.length === 0) {
    void vscode.window.showInformationMessage(`No predicted change since HEAD: no function of ${name} has changed.`);
    return;
  }
  const show = async (line?: number): Promise<void> => {
    const selection = line !== undefined ? new vscode.Range(line, 0, line, 0) : undefined;
    if (before === undefined) {
      await vscode.window.showTextDocument(document, { selection });
    } else {
      await vscode.commands.executeCommand('vscode.diff', before, document.uri, `${name} (HEAD ↔ now)`, { selection });
    }
  };
  await show(changed[0]?.line);
  const picked = await vscode.window.showQuickPick(
    // A row has a single line; the placeholder explains the brackets once.
    changed.map(({ name: label, change, line }) => ({ label, detail: change.replace(/\((\d+ %) band /g, '('), line })),
    {
      title: `Predicted cost of ${name} against HEAD`,
      placeHolder: 'Select a function to go to it; brackets contain the 80 % range',
      matchOnDetail: true,
    },
  );
  if (picked !== undefined) {
    await show(picked.line);
  }
}

/** The file at HEAD as a document for a diff; undefined if VS Code's Git extension does not know it. */
async function atHead(uri: vscode.Uri): Promise<vscode.Uri | 'absent' | undefined> {
  const git = vscode.extensions.getExtension<{ getAPI(version: 1): GitApi }>(GIT_EXTENSION);
  try {
    const api = (await git?.activate())?.getAPI(1);
    const repository = api?.getRepository(uri);
    if (api === undefined || repository === null || repository === undefined) {
      return undefined;
    }
    return await repository.show('HEAD', uri.fsPath).then(
      () => api.toGitUri(uri, 'HEAD'),
      () => 'absent' as const,
    );
  } catch {
    // The Git extension is disabled; the server runs git itself.
    return undefined;
  }
}

/** What the server predicts for each unit compared with HEAD; undefined if it predicts nothing. */
export async function againstHead(
  client: LanguageClient,
  uri: vscode.Uri,
  places: readonly Place[],
): Promise<readonly Compared[] | undefined> {
  const textDocument = { uri: client.code2ProtocolConverter.asUri(uri) };
  const ask = async (place: Place): Promise<Compared | Place> => {
    const position = { line: place.line, character: 0 };
    const hover = await client.sendRequest<{ contents: unknown } | null>('textDocument/hover', {
      textDocument,
      position,
    });
    const change = headNote(hover?.contents);
    return change === undefined ? place : { ...place, change };
  };
  const end = Date.now() + MOST_MS;
  for (;;) {
    const answers = await Promise.all(places.map(ask));
    if (answers.every((answer) => 'change' in answer)) {
      return answers;
    }
    if (Date.now() > end) {
      const known = answers.filter((answer) => 'change' in answer);
      return known.length > 0 ? known : undefined;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/** The line about HEAD in the text of a hover. */
function headNote(contents: unknown): string | undefined {
  const text = typeof contents === 'object' && contents !== null && 'value' in contents ? contents.value : undefined;
  return typeof text === 'string' ? /^(?:- )?Against HEAD: (.+)$/m.exec(text)?.[1] : undefined;
}
