/** Entry point of the extension: creates its parts and starts the server. */

import * as vscode from 'vscode';

import { registerCommands } from './common/commands';
import { createChannels } from './common/logger';
import { onDidChoose } from './common/python';
import { Session } from './common/session';
import { needsRestart, SECTION } from './common/settings';
import { StatusItem } from './common/status';
import { TextPages } from './common/texts';
import { registerNetworks } from './network/editor';
import { exportOverview } from './overview/export';
import { goTo, OverviewTree, VIEW } from './overview/tree';

const PAUSE_MS = 200;

/** For tests and other extensions. */
export interface Api {
  readonly session: Session;
  readonly status: StatusItem;
  readonly overview: OverviewTree;
}

let running: Session | undefined;

export async function activate(context: vscode.ExtensionContext): Promise<Api> {
  const channels = createChannels();
  const session = (running = new Session(context, channels));
  const status = new StatusItem(session);
  const overview = new OverviewTree(session);
  const pages = new TextPages();
  let timer: NodeJS.Timeout | undefined;
  const restartSoon = (): void => {
    // Several settings often change together.
    clearTimeout(timer);
    timer = setTimeout(() => void session.restart(), PAUSE_MS);
  };
  context.subscriptions.push(
    channels,
    status,
    overview,
    pages,
    ...registerCommands(context, session, pages),
    ...registerNetworks(context, session),
    vscode.commands.registerCommand(`${VIEW}.refresh`, () => overview.load({ refresh: true })),
    vscode.commands.registerCommand(`${VIEW}.more`, () => overview.more()),
    vscode.commands.registerCommand(`${VIEW}.open`, goTo),
    vscode.commands.registerCommand(`${VIEW}.metric`, () => overview.chooseMetric()),
    vscode.commands.registerCommand(`${VIEW}.device`, () => overview.chooseDevice()),
    vscode.commands.registerCommand(`${VIEW}.file`, () => overview.chooseFile()),
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
    channels.server.onDidChangeLogLevel(() => {
      if (session.state.kind === 'running') {
        // The server requests its settings again, including its log level.
        void session.state.client.sendNotification('workspace/didChangeConfiguration', { settings: null });
      }
    }),
    { dispose: () => clearTimeout(timer) },
  );
  const chosen = await onDidChoose(() => {
    if (vscode.workspace.getConfiguration(SECTION).get('interpreter') === null) {
      restartSoon();
    }
  });
  if (chosen !== undefined) {
    context.subscriptions.push(chosen);
  }
  void session.restart();
  return { session, status, overview };
}

export async function deactivate(): Promise<void> {
  await running?.stop();
}
