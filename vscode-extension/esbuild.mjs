/** Bundles the extension, the script that runs after it was uninstalled, and the script of its page into `dist/`. */

import * as esbuild from 'esbuild';

const common = {
  bundle: true,
  minify: process.argv.includes('--minify'),
  sourcemap: !process.argv.includes('--minify'),
  logLevel: 'info',
};
const node = { ...common, platform: 'node', target: 'node20', format: 'cjs' };
const builds = [
  { ...node, entryPoints: ['src/extension.ts'], outfile: 'dist/extension.js', external: ['vscode'] },
  // It runs without VS Code's API.
  { ...node, entryPoints: ['src/uninstall.ts'], outfile: 'dist/uninstall.js' },
  {
    ...common,
    entryPoints: ['src/webview/network-page.ts'],
    outfile: 'dist/network-page.js',
    platform: 'browser',
    target: 'es2022',
    format: 'iife',
  },
];

if (process.argv.includes('--watch')) {
  await Promise.all(builds.map(async (build) => (await esbuild.context(build)).watch()));
} else {
  await Promise.all(builds.map((build) => esbuild.build(build)));
}
