/**
 * The environments of the bundled server on the disk: where they are is recorded in the extension's folder, so that the
 * script of `vscode:uninstall`, which runs without VS Code's API, finds and removes them.
 */

import * as fs from 'fs/promises';
import * as path from 'path';

/** The name of the extension, and of its folder in the global storage. */
export const EXTENSION = 'rlm-lsp.rlm-lsp';
/** The folder of the global storage that has the environments, one for each wheel. */
export const SERVER = 'server';
/** The file in an environment that is complete. */
export const MARKER = 'installed.json';
const RECORD = 'environments.json';
/** The name of an environment: the start of the hash of its wheel. */
const NAME = /^[0-9a-f]{12}$/;

/** Record a folder with environments. Others stay recorded: VS Code may run with several data folders. */
export async function record(extension: string, folder: string): Promise<void> {
  const known = await recorded(extension);
  if (!known.includes(folder)) {
    const file = path.join(extension, RECORD);
    const written = `${file}.${process.pid}`;
    await fs.writeFile(written, JSON.stringify([...known, folder]));
    await fs.rename(written, file);
  }
}

/** The folders with environments that a version of the extension has recorded; none if it has not, or not readably. */
export async function recorded(extension: string): Promise<string[]> {
  try {
    const folders: unknown = JSON.parse(await fs.readFile(path.join(extension, RECORD), 'utf8'));
    return Array.isArray(folders) ? folders.filter((folder) => typeof folder === 'string') : [];
  } catch {
    return [];
  }
}

/**
 * Remove the environments in a recorded folder, and the folder if nothing else is in it. Throws an error if the folder is
 * not one that the extension makes, or is or is in a link, and leaves it as it is.
 */
export async function removeRecorded(folder: string): Promise<void> {
  const storage = path.dirname(folder);
  const isOurs = path.basename(folder) === SERVER && path.basename(storage) === EXTENSION;
  if (!isOurs || path.resolve(folder) !== folder || path.basename(path.dirname(storage)) !== 'globalStorage') {
    throw new Error('it is not a folder of this extension');
  }
  for (const part of [path.dirname(storage), storage, folder]) {
    const stat = await fs.lstat(part).catch(ifMissing);
    if (stat === undefined) {
      return;
    }
    if (!stat.isDirectory()) {
      throw new Error(`${part} is a link or a file`);
    }
  }
  await removeAll(folder);
  // Whatever else is in it is not from the extension.
  await fs.rmdir(folder).catch(() => undefined);
}

/** Remove all environments in a folder: what has their name and is not a link. Does nothing if the folder is missing. */
export async function removeAll(folder: string): Promise<void> {
  for (const entry of (await fs.readdir(folder, { withFileTypes: true }).catch(ifMissing)) ?? []) {
    if (entry.isDirectory() && NAME.test(entry.name)) {
      await remove(path.join(folder, entry.name));
    }
  }
}

/** Remove an environment; links in it are removed, not followed. */
export async function remove(environment: string): Promise<void> {
  // First the marker: if this is interrupted, what is left does not count as installed.
  await fs.rm(path.join(environment, MARKER), { force: true });
  await fs.rm(environment, { recursive: true, force: true, maxRetries: 3, retryDelay: 100 });
}

function ifMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') {
    throw error;
  }
}
