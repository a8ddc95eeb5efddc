/** Settings that are not valid: one notification about them, with a button that opens them. */

import * as path from 'path';
import * as vscode from 'vscode';

import { InvalidSettings } from './protocol';
import { InvalidSetting, invalidSettings, SECTION, showSetting } from './settings';

/** Report the settings of the extension itself that are not valid: now, and those that become so later. */
export function reportInvalid(log: vscode.LogOutputChannel): vscode.Disposable {
  let reported: readonly string[] = [];
  const report = (): void => {
    const problems = invalidSettings();
    const unreported = problems.filter(({ text }) => !reported.includes(text));
    reported = problems.map(({ text }) => text);
    for (const { text } of unreported) {
      log.warn(`the editor's settings: ${text}`);
    }
    const [first] = unreported;
    if (first !== undefined) {
      void showInvalid({
        message: invalidMessage(first, unreported.length),
        places: [{ uri: null, setting: first.setting, line: 0 }],
      });
    }
  };
  report();
  return vscode.workspace.onDidChangeConfiguration((event) => {
    if (event.affectsConfiguration(SECTION)) {
      report();
    }
  });
}

/** The same sentence as the server's (`rlm_lsp/rendering/settings_messages.py`). */
function invalidMessage({ text }: InvalidSetting, count: number): string {
  return count === 1
    ? `rlm-lsp ignores a setting that is not valid, in the editor's settings: ${text}`
    : `rlm-lsp ignores ${count} settings that are not valid. The first, in the editor's settings: ${text}`;
}

/** Show which settings are not valid, with a button for each place that has them. */
export async function showInvalid({ message, places }: InvalidSettings): Promise<void> {
  const buttons = places.map((place) => ({
    title: place.uri === null ? 'Open Settings' : `Open ${path.posix.basename(place.uri)}`,
    place,
  }));
  const pressed = await vscode.window.showWarningMessage(message, ...buttons);
  if (pressed === undefined) {
    return;
  }
  const { uri, setting, line } = pressed.place;
  if (uri === null) {
    showSetting(setting);
  } else {
    await vscode.window.showTextDocument(vscode.Uri.parse(uri), { selection: new vscode.Range(line, 0, line, 0) });
  }
}
