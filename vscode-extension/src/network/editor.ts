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
  return [
    vscode.window.registerCustomEditorProvider(NETWORK_EDITOR, editor, {
      supportsMultipleEditorsPerDocument: true,
      webviewOptions: { enableFindWidget: true },
    }),
    vscode.commands.registerCommand('rlm-lsp.compareNetworks', compare),
  ];
}

async function folderOf(uri: vscode.Uri | undefined): Promise<vscode.Uri | undefined> {
  if (uri === undefined) {
    const options = { canSelectFolders: true, canSelectFiles: false, title: 'Choose a folder with .onnx files' };
    return (await vscode.window.showOpenDialog(options))?.[0];
  }
  const { type } = await vscode.workspace.fs.stat(uri);
  return type & vscode.FileType.Directory ? uri : vscode.Uri.joinPath(uri, '..');
}
