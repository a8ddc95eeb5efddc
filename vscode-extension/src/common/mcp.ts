/** The server's tools for coding agents (`rlm-lsp mcp`), offered to the agents of VS Code versions that have such a list. */

import * as vscode from 'vscode';

import { Session } from './session';

/** Also in the manifest, under `mcpServerDefinitionProviders`. */
export const PROVIDER = 'rlm-lsp.mcp';

/** A program that speaks the Model Context Protocol over stdio. */
export interface Definition {
  readonly label: string;
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly version?: string;
}

/** What VS Code has from 1.101 on; the types that we build with are those of the oldest version that we support. */
interface NewerVscode {
  readonly lm?: {
    registerMcpServerDefinitionProvider?(id: string, provider: McpServers): vscode.Disposable;
  };
  readonly McpStdioServerDefinition?: new (
    label: string,
    command: string,
    args: readonly string[],
    env: Readonly<Record<string, string>>,
    version?: string,
  ) => Definition;
}

export class McpServers {
  private readonly changed = new vscode.EventEmitter<void>();
  readonly onDidChangeMcpServerDefinitions = this.changed.event;
  private readonly parts: readonly { dispose(): unknown }[];

  constructor(private readonly session: Session) {
    const { lm } = vscode as NewerVscode;
    const registration = lm?.registerMcpServerDefinitionProvider?.(PROVIDER, this);
    this.parts = [
      this.changed,
      session.onDidChangeState(({ kind }) => {
        if (kind === 'running' || kind === 'failed') {
          this.changed.fire();
        }
      }),
      ...(registration !== undefined ? [registration] : []),
    ];
  }

  /** The tools of the server that runs; none in a version of VS Code that has no list of such servers. */
  provideMcpServerDefinitions(): Definition[] {
    const { McpStdioServerDefinition: McpServer } = vscode as NewerVscode;
    const { state } = this.session;
    if (McpServer === undefined || state.kind !== 'running') {
      return [];
    }
    const { command, args, version } = state.server;
    return [new McpServer('rlm-lsp', command, [...args, 'mcp'], {}, version)];
  }

  dispose(): void {
    for (const part of this.parts) {
      part.dispose();
    }
  }
}
