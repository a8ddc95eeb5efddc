/** The messages between the extension and its page about networks. */

import { Network, Networks, Sizes } from '../common/protocol';

export type ToPage =
  | { readonly kind: 'waiting'; readonly text: string }
  | { readonly kind: 'problem'; readonly text: string; readonly action: string | undefined }
  | { readonly kind: 'network'; readonly network: Network }
  | { readonly kind: 'networks'; readonly networks: Networks; readonly current: string | undefined }
  | { readonly kind: 'pair'; readonly first: Network; readonly second: Network };

export type FromPage =
  | { readonly kind: 'ready' }
  | { readonly kind: 'act' }
  | { readonly kind: 'open'; readonly uri: string }
  | { readonly kind: 'device'; readonly device: string }
  | { readonly kind: 'sizes'; readonly sizes: Sizes }
  | { readonly kind: 'copy'; readonly text: string };
