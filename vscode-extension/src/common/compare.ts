/** "Compare with HEAD": the diff of a file, and the functions that the server predicts to cost more or less. */

import * as path from 'path';
import * as vscode from 'vscode';
import { LanguageClient } from 'vscode-languageclient/node';

import { changesRequest } from './protocol';
import { asError } from './session';
import { openSettings } from './settings';

const GIT_EXTENSION = 'vscode.git';

/** What we use of the API of VS Code's Git extension. */
interface GitApi {
  getRepository(uri: vscode.Uri): { show(ref: string, file: string): Promise<string> } | null;
  toGitUri(uri: vscode.Uri, ref: string): vscode.Uri;
}

export async function compareWithHead(client: LanguageClient, document: vscode.TextDocument): Promise<void> {
  const name = path.basename(document.uri.fsPath);
  const before = await atHead(document.uri);
  if (before === 'absent') {
    void vscode.window.showInformationMessage(`${name} is not in HEAD, so there is nothing to compare it with.`);
    return;
  }
  const answer = await vscode.window.withProgress(
    { location: vscode.ProgressLocation.Window, title: 'rlm-lsp: comparing with HEAD' },
    () => client.sendRequest(changesRequest, { uri: client.code2ProtocolConverter.asUri(document.uri) }).catch(asError),
  );
  if (answer instanceof Error) {
    void vscode.window.showErrorMessage(`rlm-lsp: ${answer.message}`);
    return;
  }
  if (!answer.compared) {
    const pressed = await vscode.window.showInformationMessage(
      `${name} cannot be compared: it is not in a git repository, is new in it, or the setting "changes" is off.`,
      'Open Settings',
    );
    if (pressed !== undefined) {
      openSettings('changes');
    }
    return;
  }
  const changed = answer.changes.filter(({ neutral }) => !neutral);
  const hidden = answer.changes.length - changed.length;
  if (changed.length === 0) {
    void vscode.window.showInformationMessage(
      hidden === 0
        ? `No predicted change since HEAD: no function of ${name} has changed.`
        : `No predicted change since HEAD: no changed function of ${name} surely costs more or less.`,
    );
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
  const neutral = hidden > 0 ? `; ${hidden} unsure ${hidden === 1 ? 'change is' : 'changes are'} left out` : '';
  const picked = await vscode.window.showQuickPick(
    // A row has a single line; the placeholder explains the brackets once.
    changed.map(({ qualname, text, line }) => ({
      label: named(qualname),
      detail: text.replace(/\((\d+ %) band /g, '('),
      line,
    })),
    {
      title: `Predicted cost of ${name} against HEAD, the largest change first`,
      placeHolder: `Select a function; brackets contain the 80 % range${neutral}`,
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

/** The name of a unit for people. */
export function named(qualname: string): string {
  return qualname === '<file>' ? 'this file' : qualname;
}
