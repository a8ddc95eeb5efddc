/** The most expensive operators of a network on a device, as a bar chart in a table. */

import { Network, Prediction } from '../common/protocol';
import { quantity } from '../common/quantity';
import { deviceName } from './device-table';
import { element } from './dom';

/** The device whose operators were looked at last, so that a page that is drawn again shows the same. */
let chosen: string | null | undefined;

/** The charts of one network, or of two next to each other; empty where no device has operators for all of them. */
export function operatorCharts(networks: readonly Network[]): HTMLElement[] {
  const [first] = networks;
  const known = (first?.latency ?? []).filter(({ device }) =>
    networks.every((network) => of(network, device) !== undefined),
  );
  const [usual] = known;
  if (usual === undefined) {
    return [];
  }
  const current = known.find(({ device }) => device === chosen) ?? usual;
  const charts = element('div', { class: 'charts' }, drawn(networks, current.device));
  const choice = element('select', { id: 'operators-device' }, [
    ...known.map((prediction) => {
      const option = element('option', { value: prediction.device ?? '' }, deviceName(prediction));
      option.selected = prediction === current;
      return option;
    }),
  ]);
  choice.addEventListener('change', () => {
    chosen = choice.value;
    charts.replaceChildren(...drawn(networks, chosen));
  });
  return [
    element('h2', {}, 'Most expensive operators'),
    element('p', {}, [element('label', { for: 'operators-device' }, 'On '), choice]),
    charts,
  ];
}

function of(network: Network, device: string | null): Prediction | undefined {
  return network.latency.find((prediction) => prediction.device === device && prediction.network?.operators.length);
}

/** The bars of all networks have one scale, so that their lengths can be compared. */
function drawn(networks: readonly Network[], device: string | null): HTMLElement[] {
  const found = networks.map((network) => of(network, device)?.network);
  const most = Math.max(...found.flatMap((parts) => parts?.operators.map(({ seconds }) => seconds) ?? [0]));
  return found.map((parts, number) => {
    const operators = parts?.operators ?? [];
    const rows = operators.map(({ name, count, seconds, share }) =>
      element('tr', {}, [
        element('th', { scope: 'row' }, count > 1 ? `${count} × ${name}` : name),
        element('td', { class: 'number' }, `${(share * 100).toFixed(share < 0.0995 ? 1 : 0)} %`),
        element('td', { class: 'number' }, quantity('latency', seconds)),
        element('td', { class: 'bar' }, [bar(most > 0 ? seconds / most : 0)]),
      ]),
    );
    const left = (parts?.kernels ?? 0) - operators.reduce((sum, { count }) => sum + count, 0);
    const rest = left > 0 ? `; ${left.toLocaleString()} other operators are not shown` : '';
    const title = networks.length > 1 ? `${networks[number]?.name ?? ''}. ` : '';
    const caption = `${title}Equal operators together, with their share of the time${rest}`;
    return element('table', { class: 'operators' }, [
      element('caption', {}, caption),
      element('thead', {}, [
        element(
          'tr',
          {},
          ['Operator and output', 'Share', 'Time', ''].map((name) => element('th', { scope: 'col' }, name)),
        ),
      ]),
      element('tbody', {}, rows),
    ]);
  });
}

function bar(share: number): SVGElement {
  return element('svg', { viewBox: '0 0 100 12', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, [
    element('rect', { class: 'bar', x: '0', y: '1', width: String(Math.max(share * 100, 0.5)), height: '10' }),
  ]);
}
