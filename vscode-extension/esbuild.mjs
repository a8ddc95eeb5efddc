/** Bundles the extension and the script of its page into `dist/`. */

import * as esbuild from 'esbuild';

const common = {
  bundle: true,
  minify: process.argv.includes('--minify'),
  sourcemap: !process.argv.includes('--minify'),
  logLevel: 'info',
};
const builds = [
  {
    ...common,
    entryPoints: ['src/extension.ts'],
    outfile: 'dist/extension.js',
    platform: 'node',
    target: 'node20',
    format: 'cjs',
    external: ['vscode'],
  },
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
