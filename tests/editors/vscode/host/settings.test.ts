/** Settings: those of the project's file apply unless the user has set them in VS Code. */

import * as assert from 'node:assert/strict';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import * as vscode from 'vscode';

import { forServer, invalidSettings, readSettings } from '../../../../vscode-extension/src/common/settings';
import { extension, hints, isRunning, open, set, someHints, until } from './tools';

describe('settings', () => {
  let file: vscode.Uri;

  before(async () => {
    await isRunning(await extension());
    const [folder] = vscode.workspace.workspaceFolders ?? [];
    assert.ok(folder);
    file = vscode.Uri.joinPath(folder.uri, 'rlm-lsp.toml');
  });

  afterEach(async () => {
    rmSync(file.fsPath, { force: true });
    await set('label', undefined);
    await set('severity', undefined);
    await set('tokenFile', undefined);
    await set('importStrategy', undefined);
    await set('trace.server', undefined);
  });

  after(async () => {
    // Changes of some settings restart the server after a pause.
    await new Promise((resolve) => setTimeout(resolve, 1000));
    await isRunning(await extension());
  });

  it('leaves to the file of the project what the user has not set', async () => {
    const document = await open('functions.py');
    const shows = (what: string, dash: boolean): Promise<boolean> =>
      until(what, async () => {
        const [hint] = await hints(document);
        return hint !== undefined && hint.includes('–') === dash;
      });
    await someHints(document);
    await shows('the bands of the default', true);
    writeFileSync(file.fsPath, 'label = "median"\n');
    await shows('the medians of the file', false);
    await set('label', 'band');
    await shows('the bands of the user', true);
    await set('label', undefined);
    await shows('the medians of the file again', false);
    rmSync(file.fsPath);
    await shows('the bands of the default again', true);
  });

  it('sends only what the user has set, with the defaults in the settings editor', async () => {
    const manifest = vscode.extensions.getExtension('rlm-lsp.rlm-lsp')?.packageJSON as {
      contributes: { configuration: { title: string; properties: Record<string, { default: unknown }> }[] };
    };
    const shown = Object.assign(
      {},
      ...manifest.contributes.configuration.map(({ properties }) => properties),
    ) as Record<string, { default: unknown }>;
    assert.equal(shown['rlm-lsp.label']?.default, 'band');
    assert.equal(vscode.workspace.getConfiguration('rlm-lsp').get('label'), 'band');
    // The tests themselves set one.
    const { hintsShown, ...others } = forServer(undefined, true, undefined);
    assert.deepEqual([hintsShown, others], ['all', {}]);
    await set('label', 'band');
    await set('severity', { warning: 0.8 });
    await set('tokenFile', '');
    assert.deepEqual(forServer(undefined, true, undefined), { hintsShown, label: 'band', severity: { warning: 0.8 } });
    await set('tokenFile', '/nowhere/token');
    assert.equal(forServer(undefined, true, undefined).tokenFile, '/nowhere/token');
    assert.equal(forServer(undefined, false, undefined).tokenFile, undefined);
  });

  it('reports once which settings of the extension itself are not valid, and ignores them', async () => {
    const { log } = await extension();
    const reports = (text: string): number => readFileSync(log.fsPath, 'utf8').split(text).length - 1;
    const message = '"importStrategy" must be one of fromEnvironment, useBundled.';
    assert.deepEqual(invalidSettings(), []);
    await set('importStrategy', 'bundled');
    assert.equal(readSettings().importStrategy, 'fromEnvironment');
    assert.deepEqual(invalidSettings(), [{ setting: 'importStrategy', text: message }]);
    await until('the report in the log', () => reports(message) === 1);
    await set('trace.server', 'everything');
    assert.deepEqual(
      invalidSettings().map(({ setting }) => setting),
      ['importStrategy', 'trace.server'],
    );
    await until('the second report', () => reports('"trace.server" must be one of') === 1);
    assert.equal(reports(message), 1);
    await set('importStrategy', 'fromEnvironment');
    await set('trace.server', '');
    assert.deepEqual(invalidSettings(), []);
  });

  it('knows lists of programs', async () => {
    const before = vscode.workspace.getConfiguration('rlm-lsp').inspect('interpreter')?.globalValue;
    const invalid = [{ setting: 'interpreter', text: '"interpreter" must be a list of programs.' }];
    try {
      for (const value of ['/usr/bin/python3', ['/usr/bin/python3'], []]) {
        await set('interpreter', value);
        assert.deepEqual(invalidSettings(), [], JSON.stringify(value));
      }
      for (const value of [3, ['/usr/bin/python3', 3], { path: '/usr/bin/python3' }]) {
        await set('interpreter', value);
        assert.deepEqual(invalidSettings(), invalid, JSON.stringify(value));
      }
    } finally {
      await set('interpreter', before);
    }
  });
});
