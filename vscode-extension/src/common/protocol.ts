/** The server's requests that are not part of the protocol. Values are in SI units; texts are for people. */

import { NotificationType, ProgressType, RequestType } from 'vscode-languageclient/node';

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
  /** What the latency of a network consists of, where it is a sum over its operators. */
  readonly network?: NetworkParts | null;
}

/** What limits a network on a device, and its most expensive operators, of all `kernels`. */
export interface NetworkParts {
  readonly bound: 'compute' | 'bandwidth';
  /** The share of the time that grows with multiply-accumulates. */
  readonly arithmetic: number;
  readonly kernels: number;
  readonly operators: readonly Operator[];
}

/** An operator, how often the network has it, and the seconds of all of them together. */
export interface Operator {
  readonly name: string;
  readonly count: number;
  readonly seconds: number;
  readonly share: number;
}

export interface Row extends Prediction {
  readonly uri: string;
  readonly file: string;
  readonly line: number;
  readonly character: number;
  readonly qualname: string;
  /** The group whose costs can be compared with each other; a server of another version may not send it. */
  readonly group?: string;
  /** In a notebook, the number of the cell, from 1, or the URI of its document where the notebook is open. */
  readonly cell?: number | null;
  readonly cellUri?: string | null;
  /** What the unit waits for, and its computing time; a server of another version may not send it. */
  readonly waitText?: string;
  /** When the unit was measured, and what has changed since; empty for a prediction. */
  readonly sourceText?: string;
  /** The predictions for a network on other devices; a server of another version may send a row for each. */
  readonly others?: readonly Prediction[];
}

export interface OverviewParams {
  readonly cursor?: string;
  readonly limit?: number;
  readonly metric?: string;
  readonly file?: string;
  readonly device?: string;
  readonly refresh?: boolean;
  /** Read what has changed since the last request. */
  readonly update?: boolean;
  /** Ask to be notified when the list no longer holds. */
  readonly watch?: boolean;
  /** Whether files of tests are read too. */
  readonly tests?: boolean;
  /** Rows that are found while the workspace is read are sent to this token. */
  readonly partialResultToken?: string;
}

/** Rows of an overview that were found meanwhile, and how many of the files are read. */
export interface OverviewPart {
  readonly rows: readonly Row[];
  readonly done: number;
  readonly total: number;
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
  /** A file was changed without being saved: what calls its functions in other files is shown as before. */
  readonly unsaved?: boolean;
  readonly metrics: readonly string[];
  readonly devices: readonly string[];
}

export interface Network {
  readonly name: string;
  readonly text: string;
  readonly model: string;
  readonly accuracy: readonly Prediction[];
  readonly latency: readonly Prediction[];
  /** Peak memory by device, for models that predict it. */
  readonly memory?: readonly Prediction[];
  /** Energy of one inference, on devices where it was measured. */
  readonly energy?: readonly Prediction[];
  /** The sizes that were asked about, and those that the file leaves open with the values that were used. */
  readonly sizes?: Sizes;
  readonly open?: Sizes;
  /** Lines about measurements; a server of another version may not send them. */
  readonly measured?: readonly string[];
  /** Its costs over those of the other network of the request. */
  readonly ratios?: readonly NetworkRatio[];
}

/** A cost of one network over that of another; `direction` is missing where it is not known well enough. */
export interface NetworkRatio {
  readonly metric: string;
  readonly device: string | null;
  readonly ratio: number;
  readonly direction: 'higher' | 'lower' | null;
  readonly ratioText: string;
  readonly rangeText: string;
}

/** Sizes of the inputs of a network by name: `batch`, `image`, `tokens`, `samples`. */
export type Sizes = Readonly<Record<string, number>>;

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
/** A unit that has changed since HEAD; `neutral` if no cost has surely grown or fallen. */
export interface Change {
  readonly qualname: string;
  readonly line: number;
  readonly state: 'changed' | 'new';
  readonly text: string;
  readonly neutral: boolean;
}

/** The changes of a file, the largest first; not `compared` where git or the settings give nothing. */
export interface Changes {
  readonly compared: boolean;
  readonly changes: readonly Change[];
}

export const changesRequest = new RequestType<{ uri: string }, Changes, void>('rlm-lsp/changes');
export const overviewChangedNotification = new NotificationType<object>('rlm-lsp/overviewChanged');
export const overviewPart = new ProgressType<OverviewPart>();
export const networkRequest = new RequestType<{ uri: string; other?: string; sizes?: Sizes }, Network, void>(
  'rlm-lsp/network',
);
export const networksRequest = new RequestType<{ uri: string; device?: string; sizes?: Sizes }, Networks, void>(
  'rlm-lsp/networks',
);
export const statusRequest = new RequestType<{ uri?: string; line?: number }, Status, void>('rlm-lsp/status');

/** Settings that are not valid: one message, and the places that have them; `uri` is null for the editor's settings. */
export interface InvalidSettings {
  readonly message: string;
  readonly places: readonly { readonly uri: string | null; readonly setting: string; readonly line: number }[];
}

export const invalidSettingsNotification = new NotificationType<InvalidSettings>('rlm-lsp/invalidSettings');
