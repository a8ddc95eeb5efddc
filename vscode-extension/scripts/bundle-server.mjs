/** Builds the wheel of the server from the checkout and copies it and the model card to `bundled/`. */

import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { copyFileSync, cpSync, mkdirSync, readFileSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const extension = path.dirname(path.dirname(fileURLToPath(import.meta.url)));
const checkout = path.dirname(extension);
const bundled = path.join(extension, 'bundled');
const python = process.env.PYTHON ?? 'python3';

rmSync(bundled, { recursive: true, force: true });
mkdirSync(bundled);
execFileSync(
  python,
  ['-m', 'pip', 'wheel', '--quiet', '--disable-pip-version-check', '--no-deps', '-w', bundled, checkout],
  {
    stdio: 'inherit',
  },
);
// The extension installs only the wheel with this hash.
const [wheel] = readdirSync(bundled);
const digest = createHash('sha256')
  .update(readFileSync(path.join(bundled, wheel)))
  .digest('hex');
writeFileSync(path.join(bundled, 'SHA256SUMS'), `${digest}  ${wheel}\n`);
copyFileSync(path.join(checkout, 'MODEL_CARD.md'), path.join(bundled, 'MODEL_CARD.md'));
cpSync(path.join(checkout, 'docs', 'model-card'), path.join(bundled, 'docs', 'model-card'), { recursive: true });
for (const name of readdirSync(bundled).filter((one) => one !== 'docs')) {
  console.log(`bundled/${name} ${(statSync(path.join(bundled, name)).size / 2 ** 20).toFixed(1)} MiB`);
}
