/** "Explain Prediction": a page that opens at once, and shows the explanation, or why there is none, when it is known. */

import * as path from 'path';
import * as vscode from 'vscode';
import { ExecuteCommandRequest, LSPErrorCodes, ResponseError } from 'vscode-languageclient/node';

import { asError, Session } from './session';
import { TextPages } from './texts';

const TITLE = 'Explanation';
const COMMAND = 'rlm-lsp.explain';
const OUTDATED = '> Out of date: the code or the model has changed since. Run **Explain Prediction** again.';

/** A position as the protocol has it, in a document. */
interface Place {
  readonly uri: string;
  readonly position: { readonly line: number; readonly character: number };
}

export class Explanations implements vscode.Disposable {
  private readonly listeners: vscode.Disposable[];
  private running: vscode.CancellationTokenSource | undefined;
  /** The document and the text of the explanation that is shown, unless it is out of date. */
  private shown: { readonly uri: string; readonly text: string } | undefined;

  constructor(
    private readonly session: Session,
    private readonly pages: TextPages,
  ) {
    this.listeners = [
      vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
        if (contentChanges.length > 0 && document.uri.toString() === this.shown?.uri) {
          this.outdate();
        }
      }),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (event.affectsConfiguration('rlm-lsp.model')) {
          this.outdate();
        }
      }),
      session.onDidChangeState(({ kind }) => {
        if (kind === 'running') {
          this.outdate();
        }
      }),
    ];
  }

  /** Explain the prediction for the unit at a position; ends an explanation that is still being computed. */
  async explain({ uri, position }: Place, metric?: string): Promise<void> {
    this.running?.cancel();
    const running = (this.running = new vscode.CancellationTokenSource());
    this.shown = undefined;
    const where = `line ${position.line + 1} of ${path.posix.basename(vscode.Uri.parse(uri).path)}`;
    await this.pages.show(TITLE, `Computing the explanation of the prediction at ${where}…`);
    const text = await this.text({ uri, position }, metric, running.token);
    if (this.running === running) {
      this.running = undefined;
      this.shown = { uri, text };
      await this.pages.set(TITLE, text);
    }
  }

  dispose(): void {
    this.running?.cancel();
    for (const listener of this.listeners) {
      listener.dispose();
    }
  }

  private async text(place: Place, metric: string | undefined, token: vscode.CancellationToken): Promise<string> {
    const client = await this.session.running();
    if (client === undefined) {
      return 'There is no explanation: the server is not running.';
    }
    const params = {
      command: COMMAND,
      arguments: [place.uri, place.position, ...(metric !== undefined ? [metric] : [])],
    };
    try {
      const { markdown } = (await client.sendRequest(ExecuteCommandRequest.type, params, token)) as {
        markdown: string;
      };
      return markdown;
    } catch (error) {
      return error instanceof ResponseError && error.code === LSPErrorCodes.RequestCancelled
        ? 'Cancelled. Run **Explain Prediction** again to compute it.'
        : `There is no explanation: ${asError(error).message}`;
    }
  }

  private outdate(): void {
    if (this.shown !== undefined) {
      void this.pages.set(TITLE, `${OUTDATED}\n\n${this.shown.text}`);
      this.shown = undefined;
    }
  }
}
