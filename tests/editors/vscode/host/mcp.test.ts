/** The tools for coding agents that the extension offers to VS Code: the program starts and answers. */

import * as assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import * as vscode from 'vscode';

import { PROVIDER } from '../../../../vscode-extension/src/common/mcp';
import { extension, isRunning } from './tools';

const MESSAGES = [
  {
    id: 1,
    method: 'initialize',
    params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
  },
  { method: 'notifications/initialized' },
  { id: 2, method: 'tools/list' },
];

describe('tools for coding agents', () => {
  it('are registered with the name that the manifest has', () => {
    const { contributes } = vscode.extensions.getExtension('rlm-lsp.rlm-lsp')?.packageJSON as {
      contributes: { mcpServerDefinitionProviders: readonly { id: string }[] };
    };
    const names = contributes.mcpServerDefinitionProviders.map(({ id }) => id);
    assert.deepEqual(names, [PROVIDER]);
  });

  it('are those of the server that runs', async () => {
    const api = await extension();
    await isRunning(api);
    const [definition, ...others] = api.mcp.provideMcpServerDefinitions();
    assert.ok(definition !== undefined && others.length === 0);
    const server = spawn(definition.command, definition.args, { stdio: ['pipe', 'pipe', 'inherit'] });
    try {
      for (const message of MESSAGES) {
        server.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
      }
      for await (const line of createInterface(server.stdout)) {
        const answer = JSON.parse(line) as { id?: number; result?: { tools?: { name: string }[] } };
        if (answer.id === 2) {
          const names = answer.result?.tools?.map(({ name }) => name);
          assert.ok(names?.includes('predict') && names.includes('compare'), String(names));
          return;
        }
      }
      assert.fail('the server has ended without an answer');
    } finally {
      server.kill();
    }
  });
});
