/** The connection to a server process. */

import { ChildProcess, spawn } from 'child_process';
import * as os from 'os';
import * as vscode from 'vscode';
import {
  CloseAction,
  ErrorAction,
  LanguageClient,
  LanguageClientOptions,
  MessageType,
  ShowMessageNotification,
  TextDocumentContentRequest,
  WorkDoneProgressCancelNotification,
} from 'vscode-languageclient/node';

import { showInvalid } from './invalid';
import { Channels, serverLogLevel } from './logger';
import { offerCommand, SHOWN_BY_SERVER } from './measure';
import { lastLine } from './process';
import { invalidSettingsNotification, overviewChangedNotification } from './protocol';
import { Server } from './server';
import { forServer, SECTION } from './settings';

/** The languages that get predictions; `ttir` has no name in VS Code. */
export const LANGUAGES = [
  'python',
  'c',
  'cpp',
  'csharp',
  'go',
  'java',
  'javascript',
  'javascriptreact',
  'kotlin',
  'php',
  'ruby',
  'rust',
  'scala',
  'swift',
  'typescript',
  'typescriptreact',
];

const FILES = [
  ...LANGUAGES.flatMap((language) => [
    { scheme: 'file', language },
    { scheme: 'untitled', language },
  ]),
  { scheme: 'file', pattern: '**/*.ttir' },
];

/** Whether a document gets predictions: a file, an unsaved file or a Python cell of a notebook. */
export function isSupported(document: vscode.TextDocument): boolean {
  return vscode.languages.match([...FILES, { notebookType: '*', language: 'python' }], document) > 0;
}

export const SHOW_DETAILS = 'rlm-lsp.showDetails';
export const SHOW_GPUS = 'rlm-lsp.showGpus';
const LAST_WORDS_MS = 2000;
/** The start of server messages for which we show buttons. */
const NO_MODEL = /^rlm-lsp: (no predictions|the model is unchanged)/;
const FIRST_NOTICE = 'rlm-lsp: The range after a signature';
const READY_NOTICE = 'rlm-lsp is ready.';

/** Work of the server that is in progress: its title, and how much is done, such as `40 of 200`. */
export interface Work {
  readonly token: string | number;
  readonly title: string;
  readonly done: string;
}

/** The title of the work that the view Predicted Cost shows. */
export const READING_WORKSPACE = 'reading the workspace';

/** Receives the events of a connection. */
export interface Listener {
  /** The process has exited unexpectedly; `reason` is the last line that it wrote to stderr. */
  ended(reason: string): void;
  /** The work of the server that is in progress has changed. */
  works(works: readonly Work[]): void;
  /** Hints arrived, so new predictions may be available. */
  answered(): void;
  noModel(reason: string): void;
  /** The list of the view Predicted Cost no longer holds. */
  overviewChanged(): void;
}

/** Only logs errors of the connection; the session reports them to the user, with buttons that fix them. */
class QuietClient extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

export class Connection {
  readonly client: LanguageClient;
  process: ChildProcess | undefined;
  private stderr = '';
  private readonly works = new Map<string | number, Work & { readonly shown: boolean }>();
  private stopping = false;
  private setClosed: () => void = () => undefined;
  private readonly closed = new Promise<void>((resolve) => {
    this.setClosed = resolve;
  });

  constructor(server: Server, channels: Channels, listener: Listener) {
    const options: LanguageClientOptions = {
      // The protocol and VS Code name the type of a notebook differently.
      documentSelector: [...FILES, { notebook: '*', language: 'python' }],
      outputChannel: channels.log,
      traceOutputChannel: channels.trace,
      // An untrusted window restricts what its settings may choose.
      // Details are shown in the Markdown preview, which draws the plots in them.
      initializationOptions: { trusted: vscode.workspace.isTrusted, invalidSettings: true, plots: true },
      errorHandler: {
        error: () => ({ action: ErrorAction.Continue, handled: true }),
        closed: () => {
          if (!this.stopping) {
            void this.lastWords().then((words) => listener.ended(words));
          }
          return { action: CloseAction.DoNotRestart, handled: true };
        },
      },
      initializationFailedHandler: () => false,
      middleware: {
        workspace: {
          configuration: ({ items }) =>
            items.map(({ scopeUri }) =>
              forServer(
                scopeUri !== undefined ? vscode.Uri.parse(scopeUri) : undefined,
                vscode.workspace.isTrusted,
                serverLogLevel(channels.log),
              ),
            ),
        },
        provideInlayHints: async (document, range, token, next) => {
          const hints = await next(document, range, token);
          listener.answered();
          return hints;
        },
        provideHover: async (document, position, token, next) => {
          const hover = await next(document, position, token);
          hover?.contents.forEach(adapt);
          return hover;
        },
        resolveInlayHint: async (hint, token, next) => {
          const resolved = await next(hint, token);
          adapt(resolved?.tooltip);
          return resolved;
        },
        // An explanation has a page, which opens before it is known.
        executeCommand: async (command, args, next) =>
          command === 'rlm-lsp.explain'
            ? vscode.commands.executeCommand('rlm-lsp.explainPrediction', ...(args as unknown[]))
            : shown(command, await next(command, args), server),
        handleWorkDoneProgress: (token, params, next) => {
          if (params.kind === 'begin') {
            const title = params.title.replace(/^rlm-lsp: /, '');
            // The status item or a view shows what is not shown here: all that cannot be cancelled, and their own work.
            const shown = params.cancellable === true && title !== READING_WORKSPACE;
            this.works.set(token, { token, title, done: params.message ?? '', shown });
          }
          const work = this.works.get(token);
          if (work !== undefined && params.kind === 'report') {
            this.works.set(token, { ...work, done: params.message ?? '' });
          }
          if (params.kind === 'end') {
            this.works.delete(token);
          }
          listener.works([...this.works.values()]);
          if (work?.shown !== false || params.kind === 'end') {
            next(token, params);
          }
        },
      },
    };
    this.client = new QuietClient(SECTION, 'rlm-lsp', () => this.begin(server, channels), options);
    this.client.onNotification(ShowMessageNotification.type, ({ type, message }) => show(type, message, listener));
    this.client.onNotification(invalidSettingsNotification, (invalid) => void showInvalid(invalid));
    this.client.onNotification(overviewChangedNotification, () => listener.overviewChanged());
  }

  /** Read the details that are open again: another server may answer otherwise. */
  refreshDetails(): void {
    const providers = this.client.getFeature(TextDocumentContentRequest.method)?.getProviders() ?? [];
    for (const { scheme, onDidChangeEmitter } of providers) {
      for (const { uri } of vscode.workspace.textDocuments.filter((document) => document.uri.scheme === scheme)) {
        onDidChangeEmitter.fire(uri);
      }
    }
  }

  /** Stop some work; what is done by then counts. */
  cancel({ token }: Work): void {
    void this.client.sendNotification(WorkDoneProgressCancelNotification.type, { token });
  }

  async stop(): Promise<void> {
    this.stopping = true;
    try {
      await this.client.dispose();
    } catch {
      // A process that has exited or never started cannot shut down in order.
      this.process?.kill('SIGKILL');
    }
  }

  private async begin(server: Server, channels: Channels): Promise<ChildProcess> {
    const args = [...server.args, 'serve'];
    channels.log.info(`starting ${[server.command, ...args].join(' ')}`);
    const child = spawn(server.command, args, { cwd: os.homedir(), env: process.env });
    this.process = child;
    child.once('close', () => this.setClosed());
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      this.stderr = (this.stderr + text).slice(-10_000);
    });
    return new Promise((resolve, reject) => {
      child.once('spawn', () => resolve(child));
      child.once('error', reject);
    });
  }

  /** The last line that the process wrote to stderr once it has exited; output may arrive after the exit event. */
  async lastWords(): Promise<string> {
    let timer: NodeJS.Timeout | undefined;
    const enough = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, LAST_WORDS_MS);
    });
    await Promise.race([this.closed, enough]);
    clearTimeout(timer);
    return lastLine(this.stderr);
  }
}

/** In a hover, VS Code follows links to commands but not those of the server, and it leaves no room between columns. */
function adapt(text: unknown): void {
  if (text instanceof vscode.MarkdownString) {
    text.value = text.value
      .replace(/^\|.*[^|\s-].*\|$/gm, (row) => row.replaceAll(' |', '&ensp;|'))
      .replace(/\]\((rlm-lsp:[^)\s]+)\)/g, (_, uri: string) => {
        const args = encodeURIComponent(JSON.stringify([uri]));
        return `](command:${SHOW_DETAILS}?${args} "What the numbers rest on")`;
      });
    text.isTrusted = { enabledCommands: [SHOW_DETAILS] };
  }
}

/** Show a message of the server, with a button where the user can do something about it. */
function show(type: MessageType, message: string, listener: Listener): void {
  if (type === MessageType.Error && NO_MODEL.test(message)) {
    listener.noModel(message);
  } else if (type === MessageType.Error) {
    void vscode.window.showErrorMessage(message);
  } else if (type === MessageType.Warning) {
    void vscode.window.showWarningMessage(message);
  } else if (message.startsWith(FIRST_NOTICE)) {
    void vscode.window.showInformationMessage(message, 'Learn More').then((pressed) => {
      if (pressed !== undefined) {
        void vscode.commands.executeCommand('rlm-lsp.aboutHints');
      }
    });
  } else if (message.startsWith(READY_NOTICE)) {
    void vscode.window.showInformationMessage(message, 'Show All Hints').then((pressed) => {
      if (pressed !== undefined) {
        void vscode.commands.executeCommand('rlm-lsp.toggleAllHints');
      }
    });
  } else if (!message.startsWith(SHOWN_BY_SERVER)) {
    void vscode.window.showInformationMessage(message);
  }
}

/** Handle the results of the server's code actions: copy their text. */
async function shown(command: string, result: unknown, server: Server): Promise<unknown> {
  if (command === 'rlm-lsp.copyJson' && typeof result === 'string') {
    await vscode.env.clipboard.writeText(result);
    vscode.window.setStatusBarMessage('rlm-lsp: predictions copied', 4000);
  } else if (command === 'rlm-lsp.measureCommand' && typeof result === 'string') {
    // The command is done when the text is copied, not when the message has been read.
    void offerCommand(result, server);
  } else if (command === 'rlm-lsp.compareGpus') {
    await vscode.commands.executeCommand(SHOW_GPUS, (result as { markdown: string }).markdown);
  }
  return result;
}
