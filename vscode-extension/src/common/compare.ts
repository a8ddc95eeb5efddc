/** "Compare with HEAD": the file's diff, and which of its functions became dearer or cheaper, as the server tells it. */

import * as path from 'path';
import * as vscode from 'vscode';
import { LanguageClient } from 'vscode-languageclient/node';

import { openSettings } from './settings';

const GIT_EXTENSION = 'vscode.git';
/** The server looks at HEAD in the background; what it found stands in its hovers. */
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

/** What a unit is beside HEAD: `unchanged`, `new`, or how much its costs have grown or fallen. */
export interface Compared extends Place {
  readonly told: string;
}

export async function compareWithHead(
  client: LanguageClient,
  document: vscode.TextDocument,
  places: readonly Place[],
): Promise<void> {
  const name = path.basename(document.uri.fsPath);
  const before = await atHead(document.uri);
  if (before === 'absent') {
    void vscode.window.showInformationMessage(`${name} is not in HEAD: there is nothing to compare it with.`);
    return;
  }
  const compared = await vscode.window.withProgress(
    { location: vscode.ProgressLocation.Window, title: 'rlm-lsp compares with HEAD' },
    () => againstHead(client, document.uri, places),
  );
  if (compared === undefined) {
    const pressed = await vscode.window.showInformationMessage(
      `${name} was not compared: it is in no git repository, is new in it, or comparing is switched off.`,
      'Open Settings',
    );
    if (pressed !== undefined) {
      openSettings('changes');
    }
    return;
  }
  const changed = compared.filter(({ told }) => told !== 'unchanged');
  if (changed.length === 0) {
    void vscode.window.showInformationMessage(`${name} costs what it did at HEAD: none of its functions has changed.`);
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
    // A row holds no more than one line; what the brackets are is said once, above.
    changed.map(({ name: label, told, line }) => ({ label, detail: told.replace(/\((\d+ %) band /g, '('), line })),
    {
      title: `Predicted cost of ${name} against HEAD`,
      placeHolder: 'Pick one to go there; brackets hold the 80 % range',
      matchOnDetail: true,
    },
  );
  if (picked !== undefined) {
    await show(picked.line);
  }
}

/** The file at HEAD as a document for a diff; undefined where VS Code's Git knows nothing of it. */
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
    // It is switched off: the server has a Git of its own.
    return undefined;
  }
}

/** What the server tells of each unit beside HEAD; undefined when it tells nothing. */
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
    const told = headNote(hover?.contents);
    return told === undefined ? place : { ...place, told };
  };
  const end = Date.now() + MOST_MS;
  for (;;) {
    const found = await Promise.all(places.map(ask));
    if (found.every((one) => 'told' in one)) {
      return found;
    }
    if (Date.now() > end) {
      const known = found.filter((one) => 'told' in one);
      return known.length > 0 ? known : undefined;
    }
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}

/** The note against HEAD in the text of a hover. */
function headNote(contents: unknown): string | undefined {
  const text = typeof contents === 'object' && contents !== null && 'value' in contents ? contents.value : undefined;
  return typeof text === 'string' ? /^(?:- )?Against HEAD: (.+)$/m.exec(text)?.[1] : undefined;
}
