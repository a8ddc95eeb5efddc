/** The read-only editor of `.onnx` files, and the comparison of the networks of a folder. */

import * as path from 'path';
import * as vscode from 'vscode';

import { Session } from '../common/session';
import { NetworkPage } from './page';

export const NETWORK_EDITOR = 'rlm-lsp.network';

export function registerNetworks(context: vscode.ExtensionContext, session: Session): vscode.Disposable[] {
  const { extensionUri } = context;
  const editor: vscode.CustomReadonlyEditorProvider = {
    openCustomDocument: (uri) => ({ uri, dispose: () => undefined }),
    resolveCustomEditor: (document, panel) => {
      const folder = vscode.Uri.joinPath(document.uri, '..');
      new NetworkPage(panel, { file: document.uri, folder }, session, extensionUri);
    },
  };
  const compare = async (uri?: vscode.Uri): Promise<void> => {
    const folder = await folderOf(uri);
    if (folder !== undefined) {
      const title = `Networks: ${path.basename(folder.fsPath)}`;
      const panel = vscode.window.createWebviewPanel('rlm-lsp.networks', title, vscode.ViewColumn.Active, {
        enableFindWidget: true,
      });
      new NetworkPage(panel, { file: undefined, folder }, session, extensionUri);
    }
  };
  const compareTwo = async (uri?: vscode.Uri, selected?: readonly vscode.Uri[]): Promise<void> => {
    const pair = await pairOf(uri, selected);
    if (pair !== undefined) {
      const [file, other] = pair;
      const title = `${path.basename(file.fsPath)} ↔ ${path.basename(other.fsPath)}`;
      const panel = vscode.window.createWebviewPanel('rlm-lsp.networks', title, vscode.ViewColumn.Active, {
        enableFindWidget: true,
      });
      new NetworkPage(panel, { file, other, folder: vscode.Uri.joinPath(file, '..') }, session, extensionUri);
    }
  };
  return [
    vscode.window.registerCustomEditorProvider(NETWORK_EDITOR, editor, {
      supportsMultipleEditorsPerDocument: true,
      webviewOptions: { enableFindWidget: true },
    }),
    vscode.commands.registerCommand('rlm-lsp.compareNetworks', compare),
    vscode.commands.registerCommand('rlm-lsp.compareTwoNetworks', compareTwo),
  ];
}

/** The two files that are selected, or the one that is open and another one that the user picks. */
async function pairOf(
  uri: vscode.Uri | undefined,
  selected: readonly vscode.Uri[] | undefined,
): Promise<readonly [vscode.Uri, vscode.Uri] | undefined> {
  const [one, two] = selected ?? [];
  if (one !== undefined && two !== undefined) {
    return [one, two];
  }
  const input = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
  const open = input instanceof vscode.TabInputCustom && input.viewType === NETWORK_EDITOR ? input.uri : undefined;
  const first = uri ?? open ?? (await picked('Choose the first ONNX model'));
  const second = first && (await picked(`Compare ${path.basename(first.fsPath)} with`, first));
  return first && second && [first, second];
}

/** A `.onnx` file of the workspace that the user picks, other than `except`. */
async function picked(title: string, except?: vscode.Uri): Promise<vscode.Uri | undefined> {
  const files = await vscode.workspace.findFiles('**/*.onnx');
  const others = files.filter((file) => file.toString() !== except?.toString());
  const items = others.map((file) => ({ label: vscode.workspace.asRelativePath(file), file }));
  items.sort((left, right) => left.label.localeCompare(right.label));
  const placeHolder = items.length > 0 ? undefined : 'The workspace contains no other .onnx file';
  return (await vscode.window.showQuickPick(items, { title, placeHolder }))?.file;
}

async function folderOf(uri: vscode.Uri | undefined): Promise<vscode.Uri | undefined> {
  if (uri === undefined) {
    const options = { canSelectFolders: true, canSelectFiles: false, title: 'Choose a folder with .onnx files' };
    return (await vscode.window.showOpenDialog(options))?.[0];
  }
  const { type } = await vscode.workspace.fs.stat(uri);
  return type & vscode.FileType.Directory ? uri : vscode.Uri.joinPath(uri, '..');
}
