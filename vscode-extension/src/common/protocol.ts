/** The server's requests that are not part of the protocol. Values are in SI units; texts are for people. */

import { RequestType } from 'vscode-languageclient/node';

export interface Prediction {
  readonly basis: string;
  readonly metric: string;
  readonly unit: string;
  readonly coverage: number | null;
  readonly median: number | null;
  readonly low: number | null;
  readonly high: number | null;
  readonly device: string | null;
  readonly deviceName?: string | null;
  readonly workload: Readonly<Record<string, string>>;
  readonly abstained: string | null;
  readonly medianText: string;
  readonly bandText: string;
  /** What the number rests on; a server of another version may not send it. */
  readonly source?: 'measured' | 'anchored' | 'predicted';
}

export interface Row extends Prediction {
  readonly uri: string;
  readonly file: string;
  readonly line: number;
  readonly character: number;
  readonly qualname: string;
  /** What the unit waits for, and its computing time; a server of another version may not send it. */
  readonly waitText?: string;
  /** When the unit was measured, and what has changed since; empty for a prediction. */
  readonly sourceText?: string;
}

export interface OverviewParams {
  readonly cursor?: string;
  readonly limit?: number;
  readonly metric?: string;
  readonly file?: string;
  readonly device?: string;
  readonly refresh?: boolean;
}

export interface OverviewPage {
  readonly rows: readonly Row[];
  readonly cursor: string | null;
  readonly total: number;
  readonly files: number;
  readonly units: number;
  readonly abstained: number;
  readonly failed: number;
  readonly complete: boolean;
  readonly metrics: readonly string[];
  readonly devices: readonly string[];
}

export interface Network {
  readonly name: string;
  readonly text: string;
  readonly model: string;
  readonly accuracy: readonly Prediction[];
  readonly latency: readonly Prediction[];
  /** Lines about measurements; a server of another version may not send them. */
  readonly measured?: readonly string[];
}

export interface Point {
  readonly uri: string;
  readonly name: string;
  readonly accuracy: Prediction;
  readonly latency: Prediction;
  readonly front: boolean;
}

export interface Networks {
  readonly folder: string;
  readonly device: string | null;
  readonly devices: readonly { readonly id: string; readonly name: string }[];
  readonly points: readonly Point[];
  readonly others: readonly { readonly uri: string; readonly name: string; readonly reason: string }[];
  readonly left: number;
}

export interface Status {
  readonly version: string;
  readonly model: string | null;
  readonly document: {
    readonly units: number;
    readonly answered: number;
    readonly abstained: number;
    readonly reason: string | null;
  } | null;
  readonly unit: {
    readonly qualname: string;
    readonly label: string;
    readonly devices: readonly string[];
    readonly reason: string | null;
  } | null;
}

export const overviewRequest = new RequestType<OverviewParams, OverviewPage, void>('rlm-lsp/overview');
export const networkRequest = new RequestType<{ uri: string; batch?: number }, Network, void>('rlm-lsp/network');
export const networksRequest = new RequestType<{ uri: string; device?: string }, Networks, void>('rlm-lsp/networks');
export const statusRequest = new RequestType<{ uri?: string; line?: number }, Status, void>('rlm-lsp/status');
