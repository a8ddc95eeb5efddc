/** Nodes of the overview as VS Code draws them: a label with the cost, a place and a tooltip. */

import * as path from 'path';
import * as vscode from 'vscode';

import { Row } from '../common/protocol';
import { FileNode, GROUPS, GroupNode, RowNode } from './groups';
import { cellNumber } from './places';

/** The view; its commands begin with this. */
export const VIEW = 'rlm-lsp.overview';
const ICONS: Readonly<Record<string, string>> = {
  call: 'symbol-method',
  program: 'symbol-file',
  kernel: 'zap',
  module: 'symbol-class',
  network: 'type-hierarchy',
};
export const METRICS: Readonly<Record<string, string>> = {
  latency: 'Latency',
  memory: 'Peak memory',
  accuracy: 'Accuracy',
  energy: 'Energy',
};

export function groupItem({ group, files }: GroupNode): vscode.TreeItem {
  const [label, meaning] = GROUPS[group] ?? [group, ''];
  const item = new vscode.TreeItem(label, vscode.TreeItemCollapsibleState.Expanded);
  item.id = group;
  item.description = meaning;
  const predictions = files.reduce((sum, { rows }) => sum + rows.length, 0);
  item.tooltip = `${label}: ${count(predictions, 'prediction')}, each for ${meaning}`;
  return item;
}

export function fileItem({ uri, group, rows }: FileNode): vscode.TreeItem {
  const resource = vscode.Uri.parse(uri);
  const item = new vscode.TreeItem(resource, vscode.TreeItemCollapsibleState.Expanded);
  const isMulti = (vscode.workspace.workspaceFolders?.length ?? 0) > 1;
  const folder = path.posix.dirname(vscode.workspace.asRelativePath(resource, isMulti).replace(/\\/g, '/'));
  const [most] = rows;
  const cost = rows.length > 1 && most ? `${most.metric === 'accuracy' ? 'from' : 'up to'} ${most.medianText}` : '';
  item.id = `${group} ${uri}`;
  item.description = [cost, folder].filter((words) => words !== '' && words !== '.').join(' · ');
  item.iconPath = vscode.ThemeIcon.File;
  item.tooltip = `${vscode.workspace.asRelativePath(resource, isMulti)}: ${count(rows.length, 'prediction')}`;
  item.accessibilityInformation = { label: `${path.posix.basename(resource.path)}, ${item.description}` };
  return item;
}

export function rowItem({ row, isFile }: RowNode): vscode.TreeItem {
  const cost = row.waitText ? row.waitText : row.medianText;
  const isNetwork = row.basis === 'network';
  const name = isNetwork && isFile !== true ? (row.deviceName ?? row.device ?? title(row)) : shortTitle(row);
  const { None, Collapsed } = vscode.TreeItemCollapsibleState;
  const item = new vscode.TreeItem(`${cost} · ${name}`, row.others?.length ? Collapsed : None);
  const place = isNetwork ? placeOfNetwork(row, isFile === true) : placeInFile(row);
  item.description = place;
  item.tooltip = tooltip(row);
  item.iconPath = new vscode.ThemeIcon(ICONS[row.basis] ?? 'symbol-misc');
  item.command = { command: `${VIEW}.open`, title: 'Go to Source', arguments: [row] };
  item.accessibilityInformation = { label: `${row.metric} ${cost}, ${name}, ${isNetwork ? row.file : place}` };
  return item;
}

function placeInFile(row: Row): string {
  const cell = cellNumber(row);
  return `${cell !== null ? `cell ${cell}, ` : ''}line ${row.line + 1}`;
}

/** The device and the folder of a network, and the batch where it is more than one input. */
function placeOfNetwork({ file, device, deviceName, workload }: Row, isFile: boolean): string {
  const folder = path.posix.dirname(file);
  const batch = workload.batch !== undefined && workload.batch !== '1' ? `batch ${workload.batch}` : '';
  const words = isFile ? [deviceName ?? device ?? '', batch, folder === '.' ? '' : folder] : [batch];
  return words.filter((word) => word !== '').join(' · ');
}

function title(row: Row): string {
  return row.basis === 'network' || row.qualname === '<file>' ? path.posix.basename(row.file) : row.qualname;
}

/** Without the functions that a nested one is in: a row is narrow, and its tooltip has the whole name. */
function shortTitle(row: Row): string {
  return title(row).replace(/^.*<locals>\./, '');
}

function tooltip(row: Row): vscode.MarkdownString {
  const sizes = Object.entries(row.workload).map(([name, value]) => `${name} ${value}`);
  const text = new vscode.MarkdownString();
  text.appendText(`${title(row)}: ${METRICS[row.metric]?.toLowerCase() ?? row.metric} ${row.medianText}\n\n`);
  text.appendText(`80 % range: ${row.bandText}\n\n`);
  if (row.sourceText) {
    text.appendText(`${row.sourceText}\n\n`);
  }
  if (row.waitText) {
    text.appendText(`${row.waitText}\n\n`);
  }
  text.appendText([...(row.device !== null ? [`on ${row.device}`] : []), ...sizes].join(', '));
  return text;
}

export function count(number: number, noun: string): string {
  return `${number.toLocaleString()} ${noun}${number === 1 ? '' : 's'}`;
}
