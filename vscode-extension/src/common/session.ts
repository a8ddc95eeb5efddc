/** Starts the server, restarts it when it exits or its configuration changes, and reports why it cannot start. */

import * as vscode from 'vscode';
import { LanguageClient } from 'vscode-languageclient/node';

import { Bundled } from './bundled';
import { Connection, Work } from './client';
import { Channels } from './logger';
import { described, Problem, Remedies, show } from './problems';
import { statusRequest } from './protocol';
import { interpreters, probe } from './python';
import { findServer, isServer, OLDEST_SERVER, Server } from './server';
import { readSettings, SECTION } from './settings';

/** A server that exits more often than this within `WITHIN_MS` is not restarted. */
const MOST_RESTARTS = 3;
const WITHIN_MS = 180_000;
const BEGINS_WITHIN_MS = 60_000;

export type State =
  | { readonly kind: 'stopped' }
  | { readonly kind: 'installing' }
  | { readonly kind: 'starting' }
  | { readonly kind: 'running'; readonly server: Server; readonly client: LanguageClient }
  | { readonly kind: 'failed'; readonly problem: Problem };

export class Session implements vscode.Disposable {
  readonly bundled: Bundled;
  private readonly stateChanged = new vscode.EventEmitter<State>();
  private readonly worksChanged = new vscode.EventEmitter<readonly Work[]>();
  private readonly hintsAnswered = new vscode.EventEmitter<void>();
  private readonly overviewChanged = new vscode.EventEmitter<void>();
  readonly onDidChangeState = this.stateChanged.event;
  readonly onDidChangeWorks = this.worksChanged.event;
  /** New predictions may be available for the open documents. */
  readonly onDidAnswer = this.hintsAnswered.event;
  /** The list of the view Predicted Cost no longer holds. */
  readonly onDidChangeOverview = this.overviewChanged.event;

  private current: State = { kind: 'stopped' };
  private connection: Connection | undefined;
  private inProgress: readonly Work[] = [];
  private queue: Promise<void> = Promise.resolve();
  private ends: number[] = [];

  constructor(
    private readonly context: vscode.ExtensionContext,
    private readonly channels: Channels,
  ) {
    this.bundled = new Bundled(context, channels.log);
  }

  get state(): State {
    return this.current;
  }

  /** Why there is no server, if it failed to start. */
  get problem(): Problem | undefined {
    return this.current.kind === 'failed' ? this.current.problem : undefined;
  }

  /** The connection to the server once it has started; undefined, after the user was informed, if there is none. */
  async running(): Promise<LanguageClient | undefined> {
    const starting = { location: vscode.ProgressLocation.Window, title: 'rlm-lsp is starting' };
    if (this.current.kind !== 'running') {
      await vscode.window.withProgress(starting, () => this.queue);
    }
    // Read it again: the state has changed meanwhile.
    const state = this.state;
    if (state.kind === 'failed') {
      this.showProblem(state.problem);
    }
    return state.kind === 'running' ? state.client : undefined;
  }

  /** The work of the server that is in progress. */
  get works(): readonly Work[] {
    return this.inProgress;
  }

  /** Stop some work of the server; what is done by then counts. */
  cancel(work: Work): void {
    this.connection?.cancel(work);
  }

  /** The process of the running server. */
  get processId(): number | undefined {
    return this.connection?.process?.pid;
  }

  /** Stop the server if it runs, and start the server of the current settings. Calls run one after the other. */
  restart(): Promise<void> {
    return this.enqueue(() => this.begin());
  }

  /** Install the bundled server and start it. */
  install(): Promise<void> {
    return this.enqueue(async () => {
      for await (const interpreter of interpreters(readSettings())) {
        if (interpreter.recent) {
          await this.end();
          this.set({ kind: 'installing' });
          const failure = await this.bundled.install(interpreter);
          await (failure === undefined ? this.begin() : this.fail({ kind: 'install-failed', reason: failure }));
          return;
        }
      }
      await this.fail({ kind: 'no-python' });
    });
  }

  showProblem(problem: Problem): void {
    void show(problem, OLDEST_SERVER, this.remedies);
  }

  dispose(): void {
    void this.enqueue(() => this.end());
    [this.stateChanged, this.worksChanged, this.hintsAnswered, this.overviewChanged].forEach((emitter) =>
      emitter.dispose(),
    );
  }

  /** Stop the server because the window is closing. */
  async stop(): Promise<void> {
    await this.enqueue(() => this.end());
  }

  readonly remedies: Remedies = {
    install: () => void this.install(),
    restart: () => {
      this.ends = [];
      void this.restart();
    },
    showLog: () => this.showLog(),
    useBundled: () => void this.useBundled(),
    chooseInterpreter: () => void this.chooseInterpreter(),
  };

  showLog(): void {
    this.channels.log.show(true);
  }

  async chooseInterpreter(): Promise<void> {
    const [chosen] =
      (await vscode.window.showOpenDialog({
        title: 'Choose a Python interpreter (3.11 or later)',
        openLabel: 'Choose',
      })) ?? [];
    if (chosen === undefined) {
      return;
    }
    if ((await probe(chosen.fsPath)) === undefined) {
      void vscode.window.showErrorMessage(`${chosen.fsPath} is not a working Python interpreter.`);
      return;
    }
    const settings = vscode.workspace.getConfiguration(SECTION);
    await settings.update('interpreter', [chosen.fsPath], vscode.ConfigurationTarget.Global);
  }

  private async useBundled(): Promise<void> {
    const settings = vscode.workspace.getConfiguration(SECTION);
    await settings.update('path', undefined, vscode.ConfigurationTarget.Global);
    await settings.update('importStrategy', 'useBundled', vscode.ConfigurationTarget.Global);
  }

  private enqueue(work: () => Promise<void>): Promise<void> {
    this.queue = this.queue.then(work).catch((error: unknown) => this.channels.log.error(asError(error)));
    return this.queue;
  }

  private async begin(): Promise<void> {
    await this.end();
    this.set({ kind: 'starting' });
    const server = await findServer(readSettings(), this.bundled, this.channels.log);
    if (!isServer(server)) {
      return this.fail(server);
    }
    const connection = new Connection(server, this.channels, {
      ended: (reason) => this.ended(connection, reason),
      works: (works) => this.setWorks(connection, works),
      answered: () => this.hintsAnswered.fire(),
      noModel: (reason) => {
        this.showProblem({ kind: 'no-model', reason });
        this.hintsAnswered.fire();
      },
      overviewChanged: () => this.overviewChanged.fire(),
    });
    this.connection = connection;
    const start = Date.now();
    try {
      await within(BEGINS_WITHIN_MS, connection.client.start());
    } catch (error) {
      const reason = (await connection.lastWords()) || asError(error).message;
      await this.end();
      return this.fail({ kind: 'broken', path: server.command, reason, from: server.from });
    }
    if (this.connection === connection) {
      this.set({ kind: 'running', server, client: connection.client });
      void this.announce(server, connection, start, Date.now());
    }
  }

  /** Log what is running: versions, model and start times. Details that are open are read from the new server. */
  private async announce(server: Server, connection: Connection, start: number, started: number): Promise<void> {
    const { version } = this.context.extension.packageJSON as { version: string };
    try {
      const { model } = await connection.client.sendRequest(statusRequest, {});
      this.channels.log.info(
        `extension ${version}, server ${server.version} (${server.from}), model ${model ?? 'none'}; ` +
          `started in ${seconds(started - start)}, model loaded after ${seconds(Date.now() - start)}`,
      );
      connection.refreshDetails();
    } catch {
      // The server has just stopped, which is logged.
    }
  }

  private setWorks(connection: Connection, works: readonly Work[]): void {
    if (this.connection === connection) {
      this.inProgress = works;
      this.worksChanged.fire(works);
    }
  }

  private async end(): Promise<void> {
    const connection = this.connection;
    this.connection = undefined;
    this.inProgress = [];
    this.worksChanged.fire([]);
    if (connection !== undefined) {
      this.set({ kind: 'stopped' });
      await connection.stop();
    }
  }

  /** The process has exited unexpectedly: restart it, but not forever. */
  private ended(connection: Connection, reason: string): void {
    if (this.connection !== connection || this.current.kind !== 'running') {
      return;
    }
    const now = Date.now();
    this.ends = [...this.ends.filter((at) => now - at < WITHIN_MS), now];
    this.channels.log.warn(`the server has stopped${reason === '' ? '' : `: ${reason}`}`);
    if (this.ends.length > MOST_RESTARTS) {
      void this.enqueue(async () => {
        await this.end();
        await this.fail({ kind: 'crashed', reason });
      });
    } else {
      void this.restart();
    }
  }

  private async fail(problem: Problem): Promise<void> {
    this.channels.log.error(described(problem, OLDEST_SERVER).message);
    this.set({ kind: 'failed', problem });
    this.showProblem(problem);
    return Promise.resolve();
  }

  private set(state: State): void {
    this.current = state;
    void vscode.commands.executeCommand('setContext', 'rlm-lsp.state', state.kind);
    const problem = state.kind === 'failed' ? state.problem.kind : undefined;
    void vscode.commands.executeCommand('setContext', 'rlm-lsp.problem', problem);
    this.stateChanged.fire(state);
  }
}

function seconds(milliseconds: number): string {
  return `${(milliseconds / 1000).toFixed(1)} s`;
}

export function asError(error: unknown): Error {
  return error instanceof Error ? error : new Error(String(error));
}

async function within<T>(milliseconds: number, work: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it did not answer within ${milliseconds / 1000} s`)), milliseconds);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
