/** The overview as CSV or JSON, in SI units. */

import * as vscode from 'vscode';

import { Row } from '../common/protocol';
import { asError } from '../common/session';
import { inGroups, onOthers } from './groups';
import { cellNumber } from './places';
import { OverviewTree } from './tree';

const COLUMNS = [
  'file',
  'cell',
  'line',
  'qualname',
  'basis',
  'metric',
  'unit',
  'median',
  'low',
  'high',
  'coverage',
  'device',
  'workload',
  'source',
] as const;

export async function exportOverview(tree: OverviewTree, target?: vscode.Uri): Promise<void> {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  const uri =
    target ??
    (await vscode.window.showSaveDialog({
      title: 'Export predicted costs',
      filters: { CSV: ['csv'], JSON: ['json'] },
      defaultUri: folder !== undefined ? vscode.Uri.joinPath(folder, 'predicted-cost.csv') : undefined,
    }));
  if (uri === undefined) {
    return;
  }
  try {
    const rows = inGroups(await tree.all()).flatMap((row) => [row, ...onOthers(row)].map(exported));
    const text = uri.path.toLowerCase().endsWith('.json') ? `${JSON.stringify(rows, null, 2)}\n` : csv(rows);
    await vscode.workspace.fs.writeFile(uri, Buffer.from(text, 'utf8'));
    vscode.window.setStatusBarMessage(`rlm-lsp: ${rows.length} rows written to ${uri.fsPath}`, 6000);
  } catch (error) {
    void vscode.window.showErrorMessage(`rlm-lsp: export failed: ${asError(error).message}`);
  }
}

type Value = string | number | null | Readonly<Record<string, string>>;
type Exported = Readonly<Record<(typeof COLUMNS)[number], Value>>;

function exported(row: Row): Exported {
  const { file, qualname, basis, metric, unit, median, low, high, coverage, device, workload } = row;
  const [line, source] = [row.line + 1, row.source ?? 'predicted'];
  return {
    file,
    cell: cellNumber(row),
    line,
    qualname,
    basis,
    metric,
    unit,
    median,
    low,
    high,
    coverage,
    device,
    workload,
    source,
  };
}

/** Comma-separated values as in RFC 4180. */
export function csv(rows: readonly Exported[]): string {
  const lines = rows.map((row) => COLUMNS.map((name) => cell(row[name])).join(','));
  return `${[COLUMNS.join(','), ...lines].join('\r\n')}\r\n`;
}

function cell(value: Value): string {
  if (value === null) {
    return '';
  }
  const plain = typeof value === 'object' ? words(value) : String(value);
  // A spreadsheet would interpret it as a formula.
  const text = typeof value === 'string' && /^[=+\-@\t\r]/.test(plain) ? `'${plain}` : plain;
  return /[",\r\n]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}

function words(value: Readonly<Record<string, string>>): string {
  return Object.entries(value)
    .map(([name, size]) => `${name}=${size}`)
    .join(' ');
}
