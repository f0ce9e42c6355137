import type { ContextKind } from '../../history/rebuild/context-kind.js';
import type { Delivery } from '../../objects/assembly-proof.js';
import type { ModelUsage } from '../../objects/step.js';

/** A column of a strip: a request, or the end of a turn without known requests. */
export interface StripCall {
  /** How the request is known (decision E12). */
  readonly kind: ContextKind;
  readonly turn: number;
  /** The last step that it includes. */
  readonly step: number;
  readonly at: Date;
  readonly delivered?: Delivery;
  /** UTF-16 units as sent, without the harness's own messages. */
  readonly chars?: number;
  readonly sections: readonly { readonly name: string; readonly chars: number }[];
  /** Its epoch of contexts. */
  readonly epoch?: number;
  readonly usage?: ModelUsage;
}
