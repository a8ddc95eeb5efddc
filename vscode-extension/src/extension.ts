/** Entry point of the extension: creates its parts and starts the server. */

import * as vscode from 'vscode';

import { registerCommands } from './common/commands';
import { Explanations } from './common/explanation';
import { reportInvalid } from './common/invalid';
import { createChannels } from './common/logger';
import { McpServers } from './common/mcp';
import { onDidChoose } from './common/python';
import { Session } from './common/session';
import { needsRestart, readSettings } from './common/settings';
import { StatusItem } from './common/status';
import { TextPages } from './common/texts';
import { registerNetworks } from './network/editor';
import { exportOverview } from './overview/export';
import { VIEW } from './overview/items';
import { goTo } from './overview/places';
import { OverviewTree } from './overview/tree';

const PAUSE_MS = 200;

/** For tests and other extensions. */
export interface Api {
  readonly session: Session;
  readonly status: StatusItem;
  readonly overview: OverviewTree;
  readonly mcp: McpServers;
  /** The file of the log channel. */
  readonly log: vscode.Uri;
}

let running: Session | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<Api> {
  const channels = createChannels();
  const session = (running = new Session(context, channels));
  const status = new StatusItem(session);
  const overview = new OverviewTree(session);
  const pages = new TextPages();
  const explanations = new Explanations(session, pages);
  const mcp = new McpServers(session);
  let timer: NodeJS.Timeout | undefined;
  const restartSoon = (): void => {
    // Several settings often change together.
    clearTimeout(timer);
    timer = setTimeout(() => void session.restart(), PAUSE_MS);
  };
  context.subscriptions.push(
    channels,
    reportInvalid(channels.log),
    status,
    overview,
    pages,
    explanations,
    mcp,
    ...registerCommands(context, session, status, pages, explanations),
    ...registerNetworks(context, session),
    vscode.commands.registerCommand(`${VIEW}.refresh`, () => overview.load({ refresh: true })),
    vscode.commands.registerCommand(`${VIEW}.more`, () => overview.more()),
    vscode.commands.registerCommand(`${VIEW}.open`, goTo),
    vscode.commands.registerCommand(`${VIEW}.metric`, () => overview.chooseMetric()),
    vscode.commands.registerCommand(`${VIEW}.device`, () => overview.chooseDevice()),
    vscode.commands.registerCommand(`${VIEW}.file`, () => overview.chooseFile()),
    vscode.commands.registerCommand(`${VIEW}.stop`, () => overview.stop()),
    vscode.commands.registerCommand(`${VIEW}.showTests`, () => overview.load({ tests: true })),
    vscode.commands.registerCommand(`${VIEW}.hideTests`, () => overview.load({ tests: false })),
    vscode.commands.registerCommand(`${VIEW}.clear`, () => overview.clear()),
    vscode.commands.registerCommand(`${VIEW}.export`, (target?: vscode.Uri) =>
      exportOverview(overview, target instanceof vscode.Uri ? target : undefined),
    ),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (needsRestart(event)) {
        restartSoon();
      }
    }),
    vscode.workspace.onDidGrantWorkspaceTrust(restartSoon),
    channels.log.onDidChangeLogLevel(() => {
      if (session.state.kind === 'running') {
        // The server requests its settings again, including its log level.
        void session.state.client.sendNotification('workspace/didChangeConfiguration', { settings: null });
      }
    }),
    { dispose: () => clearTimeout(timer) },
  );
  const chosen = await onDidChoose(() => {
    if (readSettings().interpreter === undefined) {
      restartSoon();
    }
  });
  if (chosen !== undefined) {
    context.subscriptions.push(chosen);
  }
  void session.bundled.record();
  void session.restart();
  return { session, status, overview, mcp, log: vscode.Uri.joinPath(context.logUri, 'rlm-lsp.log') };
}

export async function deactivate(): Promise<void> {
  await running?.stop();
}
