/** Texts that the extension shows in a separate editor: read-only, rendered as Markdown. */

import * as vscode from 'vscode';

const SCHEME = 'rlm-lsp-text';

export class TextPages implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly texts = new Map<string, string>();
  private readonly changed = new vscode.EventEmitter<vscode.Uri>();
  readonly onDidChange = this.changed.event;
  // After the event: VS Code listens to it from the registration on.
  private readonly registration = vscode.workspace.registerTextDocumentContentProvider(SCHEME, this);

  async show(title: string, text: string): Promise<void> {
    await showBeside(await this.set(title, text));
  }

  /** Change a text, also where it is shown. */
  async set(title: string, text: string): Promise<vscode.Uri> {
    const uri = vscode.Uri.from({ scheme: SCHEME, path: `/${title}.md` });
    this.texts.set(uri.path, text);
    this.changed.fire(uri);
    // A preview follows its document, which VS Code closes after some minutes.
    await vscode.workspace.openTextDocument(uri);
    return uri;
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return this.texts.get(uri.path) ?? '';
  }

  dispose(): void {
    this.registration.dispose();
    this.changed.dispose();
  }
}

/** Show a text rendered as Markdown next to the code that it is about. */
export async function showBeside(uri: vscode.Uri): Promise<void> {
  await vscode.commands.executeCommand('markdown.showPreviewToSide', uri);
}
