/** The log channels: the log of the extension and its server, and the messages between them. */

import * as vscode from 'vscode';

import { isTracing, SECTION } from './settings';

export interface Channels {
  /** The log of the extension and of the server, with its stderr. */
  readonly log: vscode.LogOutputChannel;
  /** The messages between the two. */
  readonly trace: TraceChannel;
  readonly dispose: () => void;
}

export function createChannels(): Channels {
  const log = vscode.window.createOutputChannel('rlm-lsp', { log: true });
  const trace = new TraceChannel(vscode.window.createOutputChannel('rlm-lsp Trace', { log: true }));
  return { log, trace, dispose: () => [log, trace].forEach((channel) => channel.dispose()) };
}

const LEVELS: Readonly<Partial<Record<vscode.LogLevel, string>>> = {
  [vscode.LogLevel.Trace]: 'debug',
  [vscode.LogLevel.Debug]: 'debug',
  [vscode.LogLevel.Warning]: 'warning',
  [vscode.LogLevel.Error]: 'error',
};

/** The server's `logLevel` for the level of its channel; undefined for the default level. */
export function serverLogLevel(channel: vscode.LogOutputChannel): string | undefined {
  return LEVELS[channel.logLevel];
}

/**
 * A log channel whose level follows the setting `rlm-lsp.trace.server`, so that users do not also have to set the level of
 * the channel.
 */
export class TraceChannel implements vscode.LogOutputChannel {
  private readonly changed = new vscode.EventEmitter<vscode.LogLevel>();
  private readonly listener: vscode.Disposable;
  readonly onDidChangeLogLevel = this.changed.event;

  constructor(private readonly inner: vscode.LogOutputChannel) {
    this.listener = vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration(`${SECTION}.trace.server`)) {
        this.changed.fire(this.logLevel);
      }
    });
  }

  get name(): string {
    return this.inner.name;
  }

  get logLevel(): vscode.LogLevel {
    return isTracing() ? vscode.LogLevel.Trace : vscode.LogLevel.Off;
  }

  trace(message: string, ...args: unknown[]): void {
    this.inner.info(message, ...args);
  }

  debug(message: string, ...args: unknown[]): void {
    this.inner.debug(message, ...args);
  }

  info(message: string, ...args: unknown[]): void {
    this.inner.info(message, ...args);
  }

  warn(message: string, ...args: unknown[]): void {
    this.inner.warn(message, ...args);
  }

  error(error: string | Error, ...args: unknown[]): void {
    this.inner.error(error, ...args);
  }

  append(value: string): void {
    this.inner.append(value);
  }

  appendLine(value: string): void {
    this.inner.appendLine(value);
  }

  replace(value: string): void {
    this.inner.replace(value);
  }

  clear(): void {
    this.inner.clear();
  }

  show(columnOrPreserveFocus?: vscode.ViewColumn | boolean, preserveFocus?: boolean): void {
    this.inner.show(typeof columnOrPreserveFocus === 'boolean' ? columnOrPreserveFocus : preserveFocus);
  }

  hide(): void {
    this.inner.hide();
  }

  dispose(): void {
    this.listener.dispose();
    this.changed.dispose();
    this.inner.dispose();
  }
}
