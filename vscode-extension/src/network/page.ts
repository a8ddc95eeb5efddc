/** A page about a network or the networks of a folder: queries the server and answers the page's messages. */

import { randomBytes } from 'crypto';
import * as path from 'path';
import * as vscode from 'vscode';

import { quoted } from '../common/measure';
import { described } from '../common/problems';
import { Networks, networkRequest, networksRequest, Sizes } from '../common/protocol';
import { OLDEST_SERVER } from '../common/server';
import { asError, Session } from '../common/session';
import { FromPage, ToPage } from './messages';

const PAUSE_MS = 400;

export interface Shown {
  /** The file that the page is about; undefined for a folder. */
  readonly file: vscode.Uri | undefined;
  readonly folder: vscode.Uri;
  /** The file that it is compared with. */
  readonly other?: vscode.Uri;
}

export class NetworkPage implements vscode.Disposable {
  private readonly listeners: vscode.Disposable[];
  private timer: NodeJS.Timeout | undefined;
  private turn = 0;
  private device: string | undefined;
  private sizes: Sizes | undefined;
  private action: (() => void) | undefined;

  constructor(
    private readonly panel: vscode.WebviewPanel,
    private readonly shown: Shown,
    private readonly session: Session,
    extension: vscode.Uri,
  ) {
    const roots = [vscode.Uri.joinPath(extension, 'dist'), vscode.Uri.joinPath(extension, 'media')];
    panel.webview.options = { enableScripts: true, localResourceRoots: roots };
    const files = [shown.file, shown.other].filter((file) => file !== undefined);
    const watched =
      files.length > 0
        ? files.map((file) => new vscode.RelativePattern(vscode.Uri.joinPath(file, '..'), path.basename(file.fsPath)))
        : [new vscode.RelativePattern(shown.folder, '*.onnx')];
    const watchers = watched.map((pattern) => vscode.workspace.createFileSystemWatcher(pattern));
    this.listeners = [
      ...watchers,
      ...watchers.flatMap((watcher) => [
        watcher.onDidChange(() => this.later()),
        watcher.onDidCreate(() => this.later()),
      ]),
      session.onDidChangeState(() => this.later()),
      panel.webview.onDidReceiveMessage((message: FromPage) => this.answer(message)),
      panel.onDidDispose(() => this.dispose()),
    ];
    panel.webview.html = html(panel.webview, extension);
  }

  dispose(): void {
    this.turn++;
    clearTimeout(this.timer);
    for (const listener of this.listeners) {
      listener.dispose();
    }
  }

  private answer(message: FromPage): void {
    switch (message.kind) {
      case 'ready':
        void this.load();
        break;
      case 'act':
        this.action?.();
        break;
      case 'open':
        void vscode.commands.executeCommand('vscode.openWith', vscode.Uri.parse(message.uri), 'rlm-lsp.network');
        break;
      case 'device':
        this.device = message.device;
        void this.load();
        break;
      case 'sizes':
        this.sizes = message.sizes;
        void this.load();
        break;
      case 'copy':
        void vscode.env.clipboard.writeText(message.text);
        break;
    }
  }

  private later(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => void this.load(), PAUSE_MS);
  }

  private async load(): Promise<void> {
    const turn = ++this.turn;
    const { state } = this.session;
    if (state.kind === 'failed') {
      const { problem } = state;
      const { message, remedies } = described(problem, OLDEST_SERVER);
      this.fail(message, remedies[0]?.[0], () => remedies[0]?.[1](this.session.remedies));
    } else if (state.kind !== 'running') {
      this.send({ kind: 'waiting', text: 'The rlm-lsp server is starting…' });
    } else {
      try {
        const { file, other } = this.shown;
        const sizes = this.sizes;
        if (file !== undefined) {
          const network = await state.client.sendRequest(networkRequest, { uri: file.toString(), sizes });
          if (other !== undefined) {
            const second = await state.client.sendRequest(networkRequest, {
              uri: other.toString(),
              other: file.toString(),
              sizes,
            });
            if (turn === this.turn) {
              this.send({ kind: 'pair', first: network, second });
            }
            return;
          }
          if (turn === this.turn) {
            this.send({ kind: 'network', network });
          }
        }
        // Other files of the folder may fix the sizes that this one leaves open.
        const batch = sizes?.batch !== undefined ? { batch: sizes.batch } : undefined;
        const params = { uri: this.shown.folder.toString(), device: this.device, sizes: batch };
        const networks: Networks = await state.client.sendRequest(networksRequest, params);
        if (turn === this.turn) {
          this.send({ kind: 'networks', networks, current: this.shown.file?.toString() });
        }
      } catch (error) {
        if (turn === this.turn) {
          this.refused(asError(error).message);
        }
      }
    }
  }

  private refused(text: string): void {
    const { state } = this.session;
    if (/needs the onnx package/.test(text) && state.kind === 'running' && state.server.from !== 'bundled') {
      const { command, args } = state.server;
      const python = args.includes('-m') ? `${quoted(command)} ` : 'python ';
      this.fail(
        'Reading .onnx files needs the package "onnx", which is missing in the Python environment of the server.',
        'Install in Terminal',
        () => {
          const terminal = vscode.window.createTerminal({ name: 'rlm-lsp' });
          terminal.show();
          terminal.sendText(`${python}-m pip install "onnx>=1.18"`, false);
        },
      );
    } else {
      this.fail(text, 'Show Log', () => this.session.showLog());
    }
  }

  private fail(text: string, action: string | undefined, act: () => void): void {
    this.action = act;
    this.send({ kind: 'problem', text, action });
  }

  private send(message: ToPage): void {
    void this.panel.webview.postMessage(message);
  }
}

function html(webview: vscode.Webview, extension: vscode.Uri): string {
  const nonce = randomBytes(18).toString('base64');
  const script = webview.asWebviewUri(vscode.Uri.joinPath(extension, 'dist', 'network-page.js')).toString();
  const style = webview.asWebviewUri(vscode.Uri.joinPath(extension, 'media', 'network.css')).toString();
  const policy = `default-src 'none'; style-src ${webview.cspSource}; script-src 'nonce-${nonce}'`;
  return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="${style}">
<title>Network</title>
</head>
<body>
<main id="page" aria-live="polite"></main>
<script nonce="${nonce}" src="${script}"></script>
</body>
</html>`;
}
