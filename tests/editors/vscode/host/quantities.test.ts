/** Numbers of the extension are written as the server writes them. */

import * as assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';

import { quantity } from '../../../../vscode-extension/src/common/quantity';
import { extension, isRunning } from './tools';

const MANTISSAS = [1, 1.25, 1.35, 2.5, 3.75, 8.45, 9.5, 9.94, 9.95, 9.96, 9.99, 9.995, 9.999];
const METRICS = { latency: [-9, 4], memory: [0, 13], accuracy: [-3, 0], energy: [-9, 2] } as const;
const SCRIPT = `
import json, sys
from rlm_lsp.rendering.labels import quantity
print(json.dumps([quantity(metric, value) for metric, value in json.load(sys.stdin)]))
`;

describe('quantities', () => {
  it('are written with the digits and the units of the server', async () => {
    const api = await extension();
    await isRunning(api);
    assert.ok(api.session.state.kind === 'running');
    const { command } = api.session.state.server;
    const values: [string, number][] = [['latency', 0]];
    for (const [metric, [least, most]] of Object.entries(METRICS)) {
      for (let exponent = least; exponent <= most; exponent++) {
        values.push(...MANTISSAS.map((mantissa): [string, number] => [metric, mantissa * 10 ** exponent]));
      }
    }
    for (const unit of [1024, 1024 ** 2, 1024 ** 3]) {
      values.push(...MANTISSAS.map((mantissa): [string, number] => ['memory', mantissa * unit]));
    }
    const written = execFileSync(command, ['-P', '-c', SCRIPT], { input: JSON.stringify(values), encoding: 'utf8' });
    assert.deepEqual(
      values.map(([metric, value]) => quantity(metric, value)),
      JSON.parse(written),
    );
    assert.equal(quantity('latency', 999.6e-9), '1 µs');
  });
});
