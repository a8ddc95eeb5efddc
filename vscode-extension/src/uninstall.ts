/**
 * Removes the environments of the bundled server once the extension has been uninstalled: the script `vscode:uninstall` of
 * the manifest. Prints one line for each folder that could not be removed and ends with status 1; never throws.
 *
 * What it relies on (https://code.visualstudio.com/api/references/extension-manifest#extension-uninstall-hook, and
 * `extensionLifecycle.ts` and `extensionManagementService.ts` of VS Code 1.139, which code-server has too):
 * - VS Code runs the script with node when it is next started after the extension was uninstalled completely. It does not
 *   run it for a version that an update has replaced. Of several versions that are marked as removed in the file
 *   `.obsolete` it runs the script of one.
 * - It is run before the folder of the extension is deleted, so the record in that folder can be read.
 * - It is killed after 5 s. Then VS Code itself deletes the extension's global storage of the data folder that it runs
 *   with, which this script does not rely on: other data folders may share the extensions, and other editors that are
 *   made from VS Code may not do so.
 */

import * as fs from 'fs/promises';
import * as path from 'path';

import { EXTENSION, recorded, removeRecorded } from './common/environments';

/** The folders of this and other versions of the extension that are being removed; undefined if one is still installed. */
async function removedVersions(own: string): Promise<string[] | undefined> {
  const parent = path.dirname(own);
  const obsolete = await marked(parent);
  const versions = [own];
  for (const name of await fs.readdir(parent)) {
    const isVersion = name.startsWith(`${EXTENSION}-`) && !name.endsWith('.vsctmp') && name !== path.basename(own);
    if (isVersion && (await hasManifest(path.join(parent, name)))) {
      if (!obsolete.has(name)) {
        return undefined;
      }
      versions.push(path.join(parent, name));
    }
  }
  return versions;
}

/** The names of the folders that VS Code has marked as removed. */
async function marked(parent: string): Promise<Set<string>> {
  try {
    const names = JSON.parse(await fs.readFile(path.join(parent, '.obsolete'), 'utf8')) as Record<string, unknown>;
    return new Set(Object.keys(names).filter((name) => names[name] === true));
  } catch {
    return new Set();
  }
}

async function hasManifest(folder: string): Promise<boolean> {
  return fs.access(path.join(folder, 'package.json')).then(
    () => true,
    () => false,
  );
}

async function main(): Promise<void> {
  const versions = await removedVersions(path.dirname(__dirname));
  if (versions === undefined) {
    console.log('rlm-lsp: another version of the extension is installed; the server environment is kept');
    return;
  }
  for (const folder of new Set((await Promise.all(versions.map(recorded))).flat())) {
    await removeRecorded(folder).catch((error: unknown) => failed(folder, error));
  }
}

function failed(what: string, error: unknown): void {
  const reason = error instanceof Error ? error.message : String(error);
  console.error(`rlm-lsp: the server environment in ${what} was not removed: ${reason}`.replace(/\s+/g, ' '));
  process.exitCode = 1;
}

main().catch((error: unknown) => failed(path.dirname(__dirname), error));
