/** The messages between the extension and its page about networks. */

import { Network, Networks } from '../common/protocol';

export type ToPage =
  | { readonly kind: 'waiting'; readonly text: string }
  | { readonly kind: 'problem'; readonly text: string; readonly action: string | undefined }
  | { readonly kind: 'network'; readonly network: Network }
  | { readonly kind: 'networks'; readonly networks: Networks; readonly current: string | undefined };

export type FromPage =
  | { readonly kind: 'ready' }
  | { readonly kind: 'act' }
  | { readonly kind: 'open'; readonly uri: string }
  | { readonly kind: 'device'; readonly device: string }
  | { readonly kind: 'copy'; readonly text: string };
